import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import t from 'tap';
import { startDemoUpstream } from '../../src/cli/demo-upstream.ts';
import { ask } from '../helpers/client.ts';
import { serverDir, type Teardown } from '../helpers/postgres.ts';
import { until } from '../helpers/until.ts';

interface Demo {
  readonly child: ChildProcess;
  readonly said: () => string;
  readonly exited: Promise<unknown[]>;
}

function startDemo(t: Teardown, dataDir: string): Demo {
  const any = '127.0.0.1:0';
  const args = ['demo', '--listen', any, '--ops-listen', any, '--data-dir', dataDir];
  const child = spawn(process.execPath, ['--import=tsx', 'src/cli/oncegate.ts', ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, DATABASE_URL: 'postgres://must-not-be-used' },
  });
  const exited = once(child, 'exit');
  t.teardown(() => child.kill('SIGKILL'));
  let said = '';
  child.stdout?.on('data', (chunk) => (said += String(chunk)));
  return { child, said: () => said, exited };
}

/** The first three commands it prints, as requests. */
function printed(said: string): { url: string; key: string; bodies: string[] } {
  const lines = [...said.matchAll(/curl -i (\S+) -H 'Idempotency-Key: (\S+)' .* -d '(.*)'/g)];
  return { url: lines[0]?.[1] ?? '', key: lines[0]?.[2] ?? '', bodies: lines.map((line) => line[3] ?? '') };
}

/** As a person would type it. */
function shell(command: string): string {
  const { stdout, stderr } = spawnSync('sh', ['-c', command], { encoding: 'utf8' });
  return stdout + stderr;
}

t.test('what it prints works, and it counts along', async (t) => {
  const dataDir = serverDir(t);
  const demo = startDemo(t, dataDir);
  await until('the tally', () => demo.said().includes('requests 0, charges 0, replays 0\n'));
  t.match(demo.said(), /terminal, in this directory:/, 'where steps 4 and 5 find program and store');
  const { url, key, bodies } = printed(demo.said());
  t.same(bodies, ['{"amount":10}', '{"amount":10}', '{"amount":99}']);
  const post = (k: string, body = '{}') => ask(url, { key: k, body });

  const first = await post(key, bodies[0]);
  t.equal(first.status, 201);
  const again = await post(key, bodies[1]);
  t.match(again, { status: 201, headers: { 'idempotent-replayed': 'true' } });
  t.equal(String(again.body), String(first.body));
  t.equal((await post(key, bodies[2])).status, 422);
  await until('the tally', () => demo.said().includes('requests 3, charges 1, replays 1\n'));

  t.equal((await post('second')).status, 201);
  t.equal((await post('third')).status, 502, 'its answer is lost after it charged');
  t.equal((await post('third')).status, 409, 'and it is not charged again');
  await until('the tally', () => demo.said().includes('requests 6, charges 3, replays 1, unknown 1\n'));

  const [list = '', resolve = ''] = [...demo.said().matchAll(/^ {2}(node .* keys .*)$/gm)].map(
    ([, line]) => line,
  );
  const listed = shell(list);
  t.match(listed, /^\w{16} +unknown +.* POST +\/charges/m);
  const id = /^(\w{16}) +unknown/m.exec(listed)?.[1] ?? '';
  t.match(shell(`${resolve.replace(' ID ', ` ${id} `)} --yes`), /is completed; retries get 201/);
  t.match(await post('third'), { status: 201, headers: { 'idempotent-replayed': 'true' } });

  demo.child.kill('SIGKILL');
  await demo.exited;
  const next = startDemo(t, dataDir);
  await until('the tally', () => next.said().includes('requests 0'));
  t.not(printed(next.said()).key, key, 'a key of its own, for the store remembers the old one');
  const replayed = await ask(printed(next.said()).url, { key, body: '{"amount":10}' });
  t.equal(replayed.headers['idempotent-replayed'], 'true', 'after kill -9 too');
  next.child.kill('SIGINT');
  t.same(await next.exited, [0, null]);
  t.match(next.said(), /replays 1\nStopped\.\n$/);
});

t.test('the service behind it charges each time it is asked', async (t) => {
  let charges = 0;
  const upstream = await startDemoUpstream(() => (charges += 1));
  t.teardown(upstream.close);
  const charge = () => fetch(`${upstream.origin}/charges`, { method: 'POST' });
  t.same(await (await charge()).json(), { charge: 'ch_1', status: 'paid' });
  t.same(await (await charge()).json(), { charge: 'ch_2', status: 'paid' });
  await t.rejects(charge(), 'the third is made and its answer lost');
  t.equal(charges, 3);
  t.same(await (await fetch(upstream.origin)).json(), { charges: 3 });
});
