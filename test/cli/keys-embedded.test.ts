import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { hashOf } from '../../src/core/record.ts';
import { startEmbedded } from '../../src/store/postgres/embedded.ts';
import { holdsCluster } from '../../src/store/postgres/embedded-home.ts';
import { migrateUp } from '../../src/store/postgres/migrate.ts';
import { PostgresStore } from '../../src/store/postgres/postgres.ts';
import { serverDir } from '../helpers/postgres.ts';
import { doubtful } from '../store/operator-harness.ts';
import { anyPorts, doctor } from './doctor-run.ts';
import { inProcess } from './in-process.ts';

t.test('keys reach an embedded store beside its owner, and when it is stopped', async (t) => {
  const dataDir = serverDir(t);
  const keys = (...args: string[]) => inProcess(['keys', ...args, '--embedded', '--data-dir', dataDir]);
  const owner = await startEmbedded({ dataDir, log: () => {} });
  let id: string;
  try {
    await migrateUp(owner.url);
    const store = new PostgresStore({ url: owner.url, poolSize: 6, durability: 'strict' });
    id = hashOf(await doubtful(store)).slice(0, 16);
    t.match(await keys('list'), { code: 0, out: new RegExp(`${id} +unknown`), err: '' });
    t.match(await keys('show', id), {
      code: 0,
      out: new RegExp(`keys resolve ${id} --epoch \\d+ --embedded --data-dir ${dataDir} --released`),
    });
    const flags = ` --embedded --data-dir ${dataDir}`;
    t.match(await keys('purge', id, '--reason', 'no', '--yes'), {
      code: 1,
      err: `Resolve it first: oncegate keys show ${id}${flags} says how`,
    });
    t.match(await keys('list', '--state', 'completed'), { err: `keys show --key KEY --path PATH${flags}\n` });
    const seen = await doctor(t, ['--embedded', '--data-dir', dataDir, ...anyPorts]);
    t.match(seen.check('unknown').advice, `oncegate keys list${flags}\n`, 'what the doctor tells to run');
    await store.close(0);
  } finally {
    await owner.stop();
  }
  t.match(await keys('resolve', id, '--released', '--reason', 'not in the ledger', '--yes'), {
    code: 0,
    out: /is failed_retryable/,
  });
  t.match(await keys('show', id), { code: 0, out: /not in the ledger/ });
  const again = await startEmbedded({ dataDir, log: () => {} });
  await again.stop();
  t.not(again.pid, owner.pid, 'the server of the visit is stopped again');
});

t.test('a directory that may not be looked into is not called empty', async (t) => {
  const dataDir = serverDir(t);
  chmodSync(dataDir, 0);
  // Root may look everywhere.
  const uid = process.geteuid?.();
  if (uid === 0) process.seteuid?.(65534);
  try {
    t.throws(() => holdsCluster(dataDir), {
      code: 'embedded_failed',
      message: /cannot use .*belongs to another user/,
    });
  } finally {
    if (uid === 0) process.seteuid?.(0);
  }
});

t.test('a directory without a store is told, and none is made there', async (t) => {
  const dataDir = join(serverDir(t), 'elsewhere');
  t.match(await inProcess(['keys', 'list', '--embedded', '--data-dir', dataDir]), {
    code: 2,
    err: /there is no embedded store in .*elsewhere.*--data-dir/,
  });
  t.notOk(existsSync(dataDir));
});
