/** The SDKs of test/sdk, installed in the cache by what is pinned there, each driven as a process of its own. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { attempt, cacheDir, check, root, step } from './steps.mjs';

const source = join(root, 'test/sdk');
/** Milliseconds for one call, with its retries, before it is called stuck. */
const patienceMs = 40_000;

export async function npmClients() {
  const dir = await installed('npm', ['package.json', 'package-lock.json'], (into) =>
    attempt('npm', ['ci', '--no-audit', '--no-fund'], { cwd: into }),
  );
  if (dir === null) return {};
  // Beside its packages: a module is looked for from the file that asks for it.
  copyFileSync(join(source, 'clients.mjs'), join(dir, 'clients.mjs'));
  // Warns of each Node.js line long before its end.
  const env = { ...process.env, AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true' };
  const open = (name) => (t) => driven(t, process.execPath, [join(dir, 'clients.mjs'), name], env);
  return byName(['stripe', 'openai', 'aws-sdk', 'axios + axios-retry', 'got'], open);
}

export async function pythonClients() {
  const dir = await installed('python', ['requirements.txt'], (into) => {
    const args = ['-m', 'pip', 'install', '--quiet', '--target', into, '-r', 'requirements.txt'];
    return attempt('python3', args, { cwd: into });
  });
  if (dir === null) return {};
  const env = { ...process.env, PYTHONPATH: dir };
  const open = (name) => (t) => driven(t, 'python3', [join(source, 'clients.py'), name], env);
  return byName(['stripe (Python)', 'requests'], open);
}

function byName(names, open) {
  return Object.fromEntries(names.map((name) => [name, open(name)]));
}

const outOfReach =
  /ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ENETUNREACH|ETIMEDOUT|NewConnectionError|ConnectTimeoutError|Name or service not known|status 127|is not installed/;

/** The directory, by the digest of what is pinned; null: the registry cannot be reached. Only a whole one is ever found. */
async function installed(kind, files, install) {
  const hash = createHash('sha256');
  for (const file of files) hash.update(readFileSync(join(source, file)));
  const dir = join(cacheDir, `sdk-${kind}-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(dir)) return dir;
  return await step(`SDKs by ${kind} (only the first time)`, () => {
    const into = mkdtempSync(join(cacheDir, 'sdk-'));
    try {
      for (const file of files) copyFileSync(join(source, file), join(into, file));
      const { status, output } = install(into);
      if (status !== 0) {
        check(outOfReach.test(output), output);
        process.stdout.write(`  skipped: no ${kind}, or its registry is out of reach\n`);
        return null;
      }
      // Another clone may have been quicker.
      if (!existsSync(dir)) renameSync(into, dir);
      return dir;
    } finally {
      rmSync(into, { recursive: true, force: true });
    }
  });
}

/** A call of which nothing else was said. */
const usual = {
  key: null,
  tenant: 'acct_1',
  amount: 1,
  note: '',
  method: 'POST',
  headers: null,
  proxy: null,
  anonymous: false,
  isStalled: false,
  retries: 0,
};

/** A process that makes a call for each line it is given, and says how it ended; several may be under way. */
function driven(t, command, args, env) {
  const child = spawn(command, args, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  const waiting = new Map();
  const end = (id, how) => {
    waiting.get(id)?.(how);
    waiting.delete(id);
  };
  const stuck = (said) => ({ threw: true, said, body: said });
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { id, ...how } = JSON.parse(line);
    end(id, how);
  });
  child.once('exit', () => {
    for (const id of waiting.keys()) end(id, stuck('its process ended'));
  });
  t.teardown(async () => {
    child.stdin.end();
    // What is stuck must not keep us.
    const timer = setTimeout(() => child.kill('SIGKILL'), patienceMs);
    await exited;
    clearTimeout(timer);
  });
  let calls = 0;
  return async (ask) => {
    const id = (calls += 1);
    const ended = new Promise((resolve) => waiting.set(id, resolve));
    const timer = setTimeout(end, patienceMs, id, stuck('its call never ended'));
    child.stdin.write(`${JSON.stringify({ id, ...usual, ...ask })}\n`);
    const how = await ended;
    clearTimeout(timer);
    return how;
  };
}
