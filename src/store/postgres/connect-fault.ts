import type pg from 'pg';
import { asError } from '../../errors.ts';

/** Where the store is, as the driver understood its URL. No credentials. */
export interface StorePlace {
  /** A path: the directory of a socket file on this machine. */
  readonly host: string;
  readonly port: number;
  readonly database: string;
}

/** Why no connection came about. */
export interface ConnectFault {
  /** `away` may heal by itself and is worth another try. The others stay until somebody changes something. */
  readonly kind: 'away' | 'refused' | 'untrusted';
  /** As in "the store refuses". */
  readonly verb: string;
  readonly reason: string;
  /** What to do; no capital and no full stop. */
  readonly advice: string;
}

type Kind = ConnectFault['kind'];
type Row = readonly [pattern: RegExp, kind: Kind, advice: string | ((place: StorePlace) => string)];

const verbs: Readonly<Record<Kind, string>> = {
  away: 'does not answer',
  refused: 'refuses',
  untrusted: 'is not trusted',
};

const theUrl = "the store's URL (DATABASE_URL, store.url or --database-url)";

/** Matched with "CODE reason", the first that fits. The code is an SQLSTATE, one of Node's, or empty. */
const rows: readonly Row[] = [
  [
    /^28.*pg_hba\.conf.*(no encryption|SSL off)/s,
    'refused',
    `add sslmode=verify-full to ${theUrl}, for this server admits no such connection in clear; or let this machine in by pg_hba.conf`,
  ],
  [
    /^28.*client certificate/s,
    'refused',
    `name a client certificate that the server takes, with sslcert=FILE and sslkey=FILE in ${theUrl}`,
  ],
  // Without a code: the driver found no password to send.
  [
    /^28|password must be/,
    'refused',
    `correct user and password in ${theUrl}; or let this machine in by pg_hba.conf`,
  ],
  [/^3D/, 'refused', `create that database, or correct its name in ${theUrl}`],
  [
    /^53300/,
    'away',
    'raise max_connections, or lower store.poolSize or the number of replicas, or use a pooler',
  ],
  [/^57P/, 'away', 'wait until PostgreSQL has started'],
  [/^ERR_SOCKET_BAD_PORT/, 'refused', `correct the port in ${theUrl}, or in PGPORT where that names none`],
  [/^(ENOTFOUND|EAI_AGAIN)/, 'away', `correct the host in ${theUrl}, or the name service of this machine`],
  [
    /^(ECONNREFUSED|ENOENT)/,
    'away',
    (place) =>
      isSocket(place)
        ? `start PostgreSQL on this machine, or correct directory (host=…) and port in ${theUrl}: nobody listens on ${socketFile(place)}`
        : `start PostgreSQL there, or correct host and port in ${theUrl}`,
  ],
  [
    /does not support SSL/,
    'refused',
    (place) =>
      isSocket(place)
        ? `remove sslmode from ${theUrl}: a socket file has no TLS and needs none`
        : `turn ssl on in that server (or pooler), or write sslmode=disable in ${theUrl} to have keys and answers travel in clear`,
  ],
  [
    /^(CERT_HAS_EXPIRED|CERT_NOT_YET_VALID)/,
    'untrusted',
    "renew the certificate of the server or its authority, or correct this machine's clock",
  ],
  [
    /^(ERR_TLS_CERT_ALTNAME|HOSTNAME_MISMATCH)/,
    'untrusted',
    `write a host that the certificate names in ${theUrl}, or give the server a certificate for this one`,
  ],
  [
    /^(SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_(GET|VERIFY|DEC)|CERT_|CRL_|INVALID_(CA|PURPOSE)|PATH_LENGTH_)/,
    'untrusted',
    `write sslrootcert=FILE in ${theUrl}, where FILE holds the certificate of the authority that signed the server's`,
  ],
  [
    /^ERR_OSSL_|^ERR_SSL_.*(UNKNOWN_CA|CERTIFICATE)/,
    'refused',
    `name a certificate that the server takes and its own key, with sslcert=FILE and sslkey=FILE in ${theUrl}`,
  ],
  [
    /^ERR_SSL_.*(VERSION|PROTOCOL|HANDSHAKE_FAILURE|CIPHER)/,
    'refused',
    'let the server (or pooler) speak TLS 1.2 or later with a usual cipher',
  ],
];

const otherwise: Row = [
  /^/,
  'away',
  `see that ${theUrl} is right, and that no firewall or network policy lies between`,
];

export function connectFault(error: unknown, place: StorePlace): ConnectFault {
  const { code = '', message, errors, cert } = asError(error) as Faulty;
  // Of a name with several addresses Node only says that none would do.
  const said = message || errors?.[0]?.message || code || 'no reason was given';
  // Node tells only the names of the kind that it compared.
  const reason =
    code === 'ERR_TLS_CERT_ALTNAME_INVALID' && cert?.subjectaltname
      ? `its certificate is for ${cert.subjectaltname}, and not for ${place.host}`
      : said;
  const [, kind, advice] = rows.find(([pattern]) => pattern.test(`${code} ${said}`.trimStart())) ?? otherwise;
  return { kind, verb: verbs[kind], reason, advice: typeof advice === 'string' ? advice : advice(place) };
}

interface Faulty extends Error {
  readonly code?: string;
  readonly errors?: readonly Error[];
  readonly cert?: { readonly subjectaltname?: string };
}

export function placeOf({ host, port, database }: pg.Client): StorePlace {
  return { host, port, database: database ?? '' };
}

export function placeText(place: StorePlace): string {
  const { host, port, database } = place;
  if (isSocket(place)) return `${socketFile(place)}, database ${database}`;
  return `${host.includes(':') ? `[${host}]` : host}:${port}/${database}`;
}

function isSocket({ host }: StorePlace): boolean {
  return host.startsWith('/');
}

/** As PostgreSQL names it. */
function socketFile({ host, port }: StorePlace): string {
  return `${host}/.s.PGSQL.${port}`;
}
