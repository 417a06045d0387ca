import { execFile } from 'node:child_process';
import { chownSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { connectFault } from '../../src/store/postgres/connect-fault.ts';
import { startEmbedded } from '../../src/store/postgres/embedded.ts';
import { checkSchema, migrateUp } from '../../src/store/postgres/migrate.ts';
import { anyPorts, doctor } from '../cli/doctor-run.ts';
import { inProcess } from '../cli/in-process.ts';
import { query, serverDir } from '../helpers/postgres.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { testUpstream } from '../helpers/upstream.ts';
import { closedPort } from '../proxy/pass-through-server.ts';
import { expired, selfSigned } from '../upstream/certificate.ts';

interface TlsServer {
  /** Its URL by a name of this machine, with this query. */
  at(query: string, host?: string): string;
  /** As the role that is admitted with TLS only. */
  asApp(query: string): string;
  /** From now on it shows this certificate; null: it speaks no TLS. */
  show(pem: string | null): Promise<void>;
  /** A file in a place that the server reads, too. */
  file(name: string, text: string): string;
  readonly socketDir: string;
}

const hba = `local all all scram-sha-256
host all oncegate all scram-sha-256
hostssl all app all scram-sha-256
`;

/** Its certificate is read at its start, so a new one is a new start. */
async function tlsServer(t: Test): Promise<TlsServer> {
  const dataDir = serverDir();
  const begin = (settings: Record<string, string>) => startEmbedded({ dataDir, settings, log: () => {} });
  let server = await begin({});
  t.teardown(async () => {
    await server.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });
  await query(server.url, `CREATE ROLE app LOGIN PASSWORD 'app-hidden'`);
  const cluster = join(dataDir, 'cluster', 'data');
  const { uid, gid } = statSync(cluster);
  const socketDir = join(cluster, 'sockets');
  mkdirSync(socketDir);
  chownSync(socketDir, uid, gid);
  const file = (name: string, text: string) => {
    const path = join(cluster, name);
    writeFileSync(path, text, { mode: 0o600 });
    chownSync(path, uid, gid);
    return path;
  };
  file('pg_hba.conf', hba);
  const at = (query: string, host = 'localhost') => {
    const url = new URL(server.url);
    url.hostname = host;
    url.search = query;
    return url.href;
  };
  return {
    at,
    asApp(query) {
      const url = new URL(at(query));
      [url.username, url.password] = ['app', 'app-hidden'];
      return url.href;
    },
    async show(pem) {
      await server.stop();
      const shown = pem === null ? {} : { ssl: 'on', ssl_cert_file: pem, ssl_key_file: pem };
      server = await begin({ ...shown, unix_socket_directories: socketDir });
    },
    file,
    socketDir,
  };
}

interface Ended {
  readonly code: number;
  readonly err: string;
  readonly out: string;
}

/** `serve` in a process of its own. One that serves or tries again for 30 s is killed by this limit. */
function serve(url: string): Promise<Ended> {
  const argv = ['--import=tsx', 'src/cli/oncegate.ts', 'serve', 'http://127.0.0.1:1', ...anyPorts];
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      argv,
      { env: { PATH: process.env['PATH'], DATABASE_URL: url }, timeout: 60_000 },
      (_, out, err) => resolve({ code: child.exitCode ?? -1, err, out }),
    );
  });
}

t.test('a certificate or a mode that stays wrong is said at once, by every command', async (t) => {
  const server = await tlsServer(t);
  const good = server.file('good.pem', selfSigned('DNS:localhost'));
  const other = server.file('other.pem', selfSigned('DNS:localhost'));
  const late = server.file('late.pem', expired('DNS:localhost'));
  const trusting = (pem: string) => `sslmode=verify-full&sslrootcert=${pem}`;

  /** All that people see of it: a start, an operator's command and the doctor. */
  async function isTold(t: Test, url: string, said: RegExp, advice: RegExp): Promise<void> {
    const ended = await serve(url);
    t.equal(ended.code, 4, 'serve');
    t.match(ended.err, said);
    t.match(ended.err, advice);
    // The driver warns of some modes by itself, before.
    t.match(ended.err, /(^|\n)oncegate: [^\n]*\n$/, 'one message');
    t.equal(ended.err.split('oncegate: ').length, 2);
    t.notMatch(ended.out, /trying again/, 'it stays so: no second try');
    t.notMatch(ended.err + ended.out, /\n\s+at |hidden|This is a bug/, 'no stack trace, no password');
    for (const args of [
      ['migrate', 'up'],
      ['keys', 'list'],
    ])
      t.match(await inProcess(args, { DATABASE_URL: url }), { code: 4, err: said }, args.join(' '));
    const seen = await doctor(t, anyPorts, { DATABASE_URL: url });
    t.equal(seen.code, 4, 'doctor');
    t.match(seen.check('reachable'), { level: 'error', text: said, advice });
  }

  await server.show(good);
  await migrateUp(server.at(trusting(good)));
  await t.test('an authority that is not ours', (t) =>
    isTold(t, server.at(trusting(other)), /is not trusted: self-signed certificate/, /sslrootcert=FILE/),
  );
  await t.test('a host that the certificate does not name', (t) =>
    isTold(
      t,
      server.at(trusting(good), '127.0.0.1'),
      /is not trusted: its certificate is for DNS:localhost, and not for 127\.0\.0\.1/,
      /write a host that the certificate names/,
    ),
  );
  await t.test('in clear, where the server admits TLS only', (t) =>
    isTold(t, server.asApp(''), /refuses: no pg_hba\.conf entry.*no encryption/, /add sslmode=verify-full/),
  );
  await t.test('TLS on a socket file', (t) =>
    isTold(
      t,
      server.at(`host=${server.socketDir}&sslmode=require`),
      /refuses: The server does not support SSL/,
      /remove sslmode/,
    ),
  );
  await t.test('all as it should be: it serves', async (t) => {
    const url = server.at(trusting(good));
    const upstream = await testUpstream(t);
    const { lines } = await sidecar(t, { upstream: upstream.url, databaseUrl: url });
    t.match(lines.join('\n'), /PostgreSQL at localhost:\d+\/oncegate, TLSv1\.3/);
    t.match(await inProcess(['keys', 'list'], { DATABASE_URL: url }), { code: 0 });
    const socket = await checkSchema(server.at(`host=${server.socketDir}`), 'tenant none').catch((e) => e);
    t.notMatch(socket, { code: /store_/ }, 'by its socket file, too');
  });

  await server.show(late);
  await t.test('a certificate past its day', (t) =>
    isTold(
      t,
      server.at(trusting(late)),
      /is not trusted: certificate has expired/,
      /renew the certificate of the server/,
    ),
  );

  await server.show(null);
  await t.test('a server without TLS', (t) =>
    isTold(t, server.at('sslmode=require'), /refuses: The server does not support SSL/, /turn ssl on/),
  );
});

t.test('a socket file that nobody listens on is named, and may come to be', async (t) => {
  const dir = serverDir(t);
  const url = `postgres:///orders?host=${dir}&user=app&port=5444`;
  await t.rejects(checkSchema(url, 'any'), {
    code: 'store_unreachable',
    message: new RegExp(`nobody listens on ${dir}/\\.s\\.PGSQL\\.5444$`),
  });
  const seen = (await doctor(t, anyPorts, { DATABASE_URL: url })).check('reachable');
  t.match(seen, {
    text: new RegExp(`^${dir}/\\.s\\.PGSQL\\.5444, database orders does not answer: .*ENOENT`),
    advice: /start PostgreSQL on this machine/,
  });
  await t.rejects(checkSchema(`postgres://app@127.0.0.1:${await closedPort()}/orders`, 'any'), {
    code: 'store_unreachable',
    message: /start PostgreSQL there, or correct host and port/,
  });
});

t.test('a port that is none, as PGPORT may have it, is said at once', async (t) => {
  await t.rejects(checkSchema('postgres://app@127.0.0.1/orders?port=99999', 'any'), {
    code: 'store_refused',
    message: /correct the port in .*PGPORT/,
  });
});

t.test('what stays wrong, and what may heal, by code', async (t) => {
  const kindOf = (code: string | undefined, message = 'why') =>
    connectFault(Object.assign(new Error(message), code === undefined ? {} : { code }), {
      host: 'db',
      port: 5432,
      database: 'orders',
    }).kind;
  for (const code of [
    'SELF_SIGNED_CERT_IN_CHAIN',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'UNABLE_TO_GET_ISSUER_CERT',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'CERT_HAS_EXPIRED',
    'CERT_NOT_YET_VALID',
    'CERT_SIGNATURE_FAILURE',
    'CERT_UNTRUSTED',
    'CERT_REVOKED',
    'INVALID_CA',
    'INVALID_PURPOSE',
    'HOSTNAME_MISMATCH',
    'ERR_TLS_CERT_ALTNAME_INVALID',
  ])
    t.equal(kindOf(code), 'untrusted', code);
  for (const code of [
    '28P01',
    '28000',
    '3D000',
    'ERR_OSSL_X509_KEY_VALUES_MISMATCH',
    'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
    'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
    'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
  ])
    t.equal(kindOf(code), 'refused', code);
  t.equal(kindOf(undefined, 'The server does not support SSL connections'), 'refused');
  t.equal(kindOf(undefined, 'SASL: client password must be a non-empty string'), 'refused');
  for (const code of ['ECONNREFUSED', 'ECONNRESET', 'ENOTFOUND', '53300', '57P03', undefined])
    t.equal(kindOf(code), 'away', String(code));
  t.equal(kindOf('ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR'), 'away');
});
