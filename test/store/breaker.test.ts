import t from 'tap';
import { Breaker } from '../../src/store/postgres/breaker.ts';
import { migrateUp } from '../../src/store/postgres/migrate.ts';
import { PostgresStore } from '../../src/store/postgres/postgres.ts';
import { classify, StatementError } from '../../src/store/postgres/statement-error.ts';
import { ownServer, query, testDatabase } from '../helpers/postgres.ts';
import { until } from '../helpers/until.ts';
import { reservation } from './samples.ts';

const cut = new StatementError('unconfirmed', 'reserve', new Error('cut'));
const away = new StatementError('unreachable', 'reserve', new Error('refused'));
const definite = (code: string) =>
  classify('reserve', Object.assign(new Error(code), { severity: 'ERROR', code }));

t.test('it opens on the third statement without answer, and one statement finds out for all', async (t) => {
  let nowMs = 0;
  const breaker = new Breaker(() => nowMs);
  const fail = (failure: StatementError) => {
    breaker.began();
    breaker.failed(failure);
  };
  fail(cut);
  fail(away);
  t.ok(breaker.admits);
  fail(cut);
  t.notOk(breaker.admits);
  nowMs += 250;
  t.ok(breaker.admits, 'after a pause one may try');
  breaker.began();
  t.notOk(breaker.admits, 'and nobody else meanwhile');
  breaker.failed(away);
  nowMs += 250;
  t.notOk(breaker.admits, 'the pause has doubled');
  nowMs += 250;
  breaker.began();
  breaker.answered();
  t.ok(breaker.admits);
  for (let i = 0; i < 20; i += 1) fail(cut);
  nowMs += 5_000;
  t.ok(breaker.admits, 'no pause is longer than five seconds');
});

t.test('what the server says of one row is an answer', async (t) => {
  for (const code of ['22001', '23505', '40001', '40P01', '54000', '55P03', 'P0001', 'XX001', 'XX002']) {
    const breaker = new Breaker(() => 0);
    for (let i = 0; i < 10; i += 1) breaker.failed(definite(code));
    t.ok(breaker.admits, code);
  }
  for (const code of ['25006', '53300', '42P01', 'XX000', '58030']) {
    const breaker = new Breaker(() => 0);
    for (let i = 0; i < 3; i += 1) breaker.failed(definite(code));
    t.notOk(breaker.admits, code);
  }
});

t.test(
  'a server that is away: refused at once, settled and renewed all the same, served again when it is back',
  async (t) => {
    const server = await ownServer(t);
    await migrateUp(server.url);
    const store = new PostgresStore({ url: server.url, poolSize: 10, durability: 'strict' });
    t.teardown(() => store.close(0));
    const held = reservation();
    t.equal((await store.reserve(held)).kind, 'reserved');
    const instance = held.instance;
    await store.openLease(instance, 60_000);
    await server.stop();
    await until('it refuses', async () => {
      t.equal((await store.reserve(reservation())).kind, 'unavailable');
      return store.isRefusing;
    });
    const { scope, key, attempt } = held;
    const settling = store.markUnknownIfHeld({ scope, key, attempt, status: null, error: 'x' });
    await server.start();
    t.equal((await settling).kind, 'settled', 'a settlement does not ask the breaker');
    t.ok(await store.renewLease(instance, 60_000), 'nor does a renewal');
    await until('it serves again', async () => (await store.reserve(reservation())).kind === 'reserved');
    t.notOk(store.isRefusing);
  },
);

for (const [name, code] of [
  ['rows that others hold never open it', '55P03'],
  ['keys that a trigger refuses never open it', 'P0001'],
  ['keys on a damaged page never open it', 'XX001'],
] as const) {
  t.test(name, async (t) => {
    const { url } = await testDatabase(t);
    await migrateUp(url);
    const store = new PostgresStore({ url, poolSize: 10, durability: 'strict' });
    t.teardown(() => store.close(0));
    await query(
      url,
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF NEW.path = '/refused' THEN RAISE EXCEPTION USING ERRCODE = '${code}'; END IF; RETURN NEW; END $$`,
    );
    await query(
      url,
      'CREATE TRIGGER refuse BEFORE INSERT ON oncegate.record FOR EACH ROW EXECUTE FUNCTION refuse()',
    );
    for (let i = 0; i < 5; i += 1) {
      t.equal((await store.reserve(reservation({ path: '/refused' }))).kind, 'unavailable');
      t.notOk(store.isRefusing);
    }
    t.equal((await store.reserve(reservation())).kind, 'reserved');
  });
}
