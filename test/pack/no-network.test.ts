import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';

const root = join(import.meta.dirname, '../..');
/** Milliseconds in which a person must learn that there is no network. */
const patienceMs = 20_000;

/** The first step of `npm start` and `npm test` on a fresh clone, with nothing in npm's cache. */
async function install(t: Test, registry: string): Promise<{ code: number; said: string }> {
  const clone = t.testdir({ cache: {}, clone: {} });
  for (const name of ['package.json', 'package-lock.json', 'scripts'])
    cpSync(join(root, name), join(clone, 'clone', name), { recursive: true });
  const child = spawn(process.execPath, ['scripts/setup.mjs', 'install'], {
    cwd: join(clone, 'clone'),
    stdio: ['ignore', 'ignore', 'pipe'],
    // Not all of ours: npm, which runs us, says there in which folder it works.
    env: {
      PATH: process.env['PATH'],
      HOME: clone,
      npm_config_registry: registry,
      npm_config_cache: join(clone, 'cache'),
    },
    timeout: patienceMs,
  });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const [code] = await once(child, 'close');
  return { code: code as number, said };
}

// On a machine with other work each try takes its time.
t.setTimeout(120_000);

t.test('no network: it says so within 20 s', async (t) => {
  const silent = createServer().listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.teardown(() => silent.close());
  const { port } = silent.address() as AddressInfo;
  for (const [what, registry] of [
    ['nobody is there', 'http://127.0.0.1:1/'],
    ['nobody answers', `http://127.0.0.1:${port}/`],
  ] as const) {
    const { code, said } = await install(t, registry);
    t.equal(code, 1, what);
    t.match(said, /npm cannot reach its registry \(\w+\).*\nConnect to the network/, what);
  }
});
