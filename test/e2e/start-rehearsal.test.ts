import t from 'tap';
import { migrateUp } from '../../src/store/postgres/migrate.ts';
import { query, type Teardown, testDatabase } from '../helpers/postgres.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { tcpProxy } from '../helpers/tcp-proxy.ts';
import { testUpstream } from '../helpers/upstream.ts';

/** Stores that take a reservation and fail at what comes later, seen before anything is served. */
async function migrated(t: Teardown): Promise<string> {
  const { url } = await testDatabase(t);
  await migrateUp(url);
  return url;
}

/** Raises in each row that the condition meets. */
function trigger(on: string, when: string, code: string, more = ''): string {
  return `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF ${when} THEN RAISE EXCEPTION 'not today' USING ERRCODE = '${code}'; END IF;
      IF TG_OP = 'DELETE' THEN RETURN OLD; END IF;
      RETURN NEW;
    END $$;
    CREATE ${more === '' ? '' : 'CONSTRAINT'} TRIGGER refuse ${on} ${more} FOR EACH ROW EXECUTE FUNCTION refuse()`;
}

const update = 'BEFORE UPDATE ON oncegate.record';
const refusals: readonly (readonly [name: string, sql: string, message: RegExp])[] = [
  [
    'a trigger that raises when an answer is kept',
    trigger(update, `NEW.state = 'completed'`, 'P0001'),
    /refuses the statement "settle", which keeps an answer.*SQLSTATE P0001, not today/,
  ],
  [
    'a trigger that raises when an outcome becomes unknown',
    trigger(update, `NEW.state = 'unknown'`, 'XX000'),
    /"settle".*SQLSTATE XX000/,
  ],
  [
    'a trigger that raises when a released key is taken over',
    trigger(update, `OLD.state = 'failed_retryable' AND NEW.state = 'in_progress'`, '0A000'),
    /"take_over", which takes a released key.*SQLSTATE 0A000/,
  ],
  [
    'a trigger that swallows updates',
    `CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RETURN NULL; END $$;
    CREATE TRIGGER swallow ${update} FOR EACH ROW EXECUTE FUNCTION swallow()`,
    /refuses the statement "confirm".*met 0 rows/,
  ],
  [
    'a rule, beside which PostgreSQL has no ON CONFLICT',
    'CREATE RULE swallow AS ON UPDATE TO oncegate.record DO INSTEAD NOTHING',
    /refuses the statement "reserve".*SQLSTATE 0A000/,
  ],
  [
    'a trigger that keeps other bytes',
    `CREATE FUNCTION other() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN NEW.body := 'other'; RETURN NEW; END $$;
    CREATE TRIGGER other ${update} FOR EACH ROW WHEN (NEW.state = 'completed') EXECUTE FUNCTION other()`,
    /"settle".*the answer that is there afterwards is another/,
  ],
  [
    'a trigger that raises when a record is removed',
    trigger('BEFORE DELETE ON oncegate.record', 'true', 'P0001'),
    /"reap", which removes a record.*SQLSTATE P0001/,
  ],
  [
    'a trigger that waits for the commit',
    trigger(
      'AFTER UPDATE ON oncegate.record',
      `NEW.state = 'completed'`,
      'P0001',
      'DEFERRABLE INITIALLY DEFERRED',
    ),
    /refuses "commit".*SQLSTATE P0001/,
  ],
];

t.test('a store that cannot settle: it does not serve, and names the statement', async (t) => {
  for (const [name, sql, message] of refusals) {
    await t.test(name, async (t) => {
      const databaseUrl = await migrated(t);
      const upstream = await testUpstream(t);
      await query(databaseUrl, sql);
      await t.rejects(sidecar(t, { upstream: upstream.url, databaseUrl }), {
        code: 'store_refused',
        exitCode: 4,
        message,
      });
      t.same(upstream.executions, [], 'nothing was sent upstream');
      t.same(await query(databaseUrl, 'SELECT FROM oncegate.record'), []);
      t.same(await query(databaseUrl, 'SELECT FROM oncegate.instance'), []);
    });
  }
});

t.test('a right that is missing', async (t) => {
  const databaseUrl = await migrated(t);
  const role = new URL(databaseUrl).pathname.slice(1);
  await query(
    databaseUrl,
    `CREATE ROLE ${role} LOGIN PASSWORD 'p';
    GRANT CREATE ON DATABASE ${role} TO ${role};
    GRANT USAGE, CREATE ON SCHEMA oncegate TO ${role};
    GRANT ALL ON ALL TABLES IN SCHEMA oncegate TO ${role};
    GRANT ALL ON ALL SEQUENCES IN SCHEMA oncegate TO ${role};
    REVOKE UPDATE ON oncegate.record FROM ${role}`,
  );
  t.teardown(() => query(databaseUrl, `DROP OWNED BY ${role}; DROP ROLE ${role}`));
  const limited = new URL(databaseUrl);
  limited.username = role;
  limited.password = 'p';
  await t.rejects(sidecar(t, { upstream: 'http://127.0.0.1:1', databaseUrl: limited.href }), {
    code: 'store_refused',
    message: /"confirm".*SQLSTATE 42501, permission denied for table record/,
  });
});

t.test('what may go away by itself is tried again', async (t) => {
  const databaseUrl = await migrated(t);
  await query(databaseUrl, 'CREATE SEQUENCE tries');
  const when = `NEW.state = 'completed' AND nextval('tries') < 2`;
  await query(databaseUrl, trigger(update, when, '53100'));
  const { lines } = await sidecar(t, { upstream: 'http://127.0.0.1:1', databaseUrl });
  const said = lines.find((line) => line.includes('trying again')) ?? '';
  t.match(said, 'settle');
  t.match(said, 'SQLSTATE 53100, not today; trying again');
});

t.test('nobody ever sees the record, and a start that dies halfway leaves nothing', async (t) => {
  const databaseUrl = await migrated(t);
  const { hostname, port } = new URL(databaseUrl);
  const proxy = await tcpProxy(t, { host: hostname, port: Number(port) });
  const removal = proxy.onceClientSends('DELETE FROM oncegate.record', 'hold');
  const starting = sidecar(t, { upstream: 'http://127.0.0.1:1', databaseUrl: proxy.through(databaseUrl) });
  await removal.fired;
  const left = async () => [
    await query(databaseUrl, 'SELECT FROM oncegate.record'),
    await query(databaseUrl, 'SELECT FROM oncegate.instance'),
  ];
  t.same(await left(), [[], []], 'while it is under way');
  removal.cut();
  const { lines } = await starting;
  t.match(
    lines.find((line) => line.includes('trying again')),
    'reap',
  );
  t.same((await left())[0], [], 'after it was cut, and once it serves');
});
