import { asError, OncegateError } from '../errors.ts';
import type { OpenedSession, StorePlace } from '../store/postgres/inspect-session.ts';
import { type Finding, failure, ok, skipped, warning } from './check.ts';

export function judgeReach(opened: OpenedSession): Finding {
  if (opened.kind === 'opened') return judgeTls(opened.session.place, opened.session.tls);
  const { place, code, reason } = opened;
  // It answered, and said no: a wrong password, no such database.
  const isRefusal = /^(28|3D)/.test(code ?? '');
  return failure(
    `${placeText(place)} ${isRefusal ? 'refuses' : 'does not answer'}: ${reason}`,
    adviceFor(code ?? '', reason),
    isRefusal ? 'store_refused' : 'store_unreachable',
  );
}

/** A socket file of this machine has a path for a host. */
const thisMachine = /^(localhost|127\..*|::1|\/.*)$/;

export function judgeTls(place: StorePlace, tls: string | null): Finding {
  const text = `${placeText(place)}, ${tls ?? 'without TLS'}`;
  if (tls !== null || thisMachine.test(place.host)) return ok(text);
  return warning(`${text}: keys and stored answers travel in clear`, `add ?sslmode=verify-full to ${theUrl}`);
}

function placeText({ host, port, database }: StorePlace): string {
  return `${host}:${port}/${database}`;
}

const theUrl = "the store's URL (DATABASE_URL, store.url or --database-url)";

function adviceFor(code: string, reason: string): string {
  // Without a code: the driver found no password to send.
  if (code.startsWith('28') || /password must be/.test(reason))
    return `correct user and password in ${theUrl}; or let this machine in by pg_hba.conf`;
  if (code.startsWith('3D')) return `create that database, or correct its name in ${theUrl}`;
  if (code === '53300')
    return 'raise max_connections, or lower store.poolSize or the number of replicas, or use a pooler';
  if (code.startsWith('57P')) return 'wait until PostgreSQL has started, then run oncegate doctor again';
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return `correct the host in ${theUrl}, or the name service of this machine`;
  if (code === 'ECONNREFUSED' || code === 'ENOENT')
    return `start PostgreSQL there, or correct host and port in ${theUrl}`;
  if (/ssl|tls|certificate|self-signed/i.test(`${code} ${reason}`))
    return `give the server's certificate authority with sslrootcert=… in ${theUrl}, or the sslmode that it offers`;
  return `see that ${theUrl} is right, and that no firewall or network policy lies between`;
}

/** A sidecar that runs has its own data directory to itself: no fault, but nothing for us to look at. */
export function judgeEmbedded(error: unknown): Finding {
  const [text = '', ...rest] = asError(error).message.split('\n');
  const [owner, advice = ''] = text.split(': ', 2);
  if (text.includes('is in use by process'))
    return skipped(`embedded: ${owner}, which has it to itself; stop that one to look at the store`);
  const code = error instanceof OncegateError ? error.code : 'embedded_failed';
  return failure(`embedded: ${text}`, rest.join('\n') || advice, code);
}
