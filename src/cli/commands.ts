/** Every command and flag, once: the parser, the help text and the settings that flags make all read this table. */
export interface Flag {
  readonly name: string;
  /** What its value is called; absent: the flag stands alone. */
  readonly value?: string;
  /** May be given several times. */
  readonly repeats?: boolean;
  readonly text: string;
  /** The config field that it sets. */
  readonly path?: readonly string[];
}

export interface Command {
  readonly name: string;
  readonly usage: string;
  readonly summary: string;
  /** More words after the command than this are a mistake. */
  readonly maxWords: number;
  readonly flags: readonly Flag[];
  readonly notes: readonly string[];
  readonly examples: readonly string[];
}

const configFlag: Flag = {
  name: 'config',
  value: 'FILE',
  text: 'YAML file (/etc/oncegate/config.yaml where it is there)',
};
const databaseFlag: Flag = {
  name: 'database-url',
  value: 'URL',
  text: 'PostgreSQL of your own; DATABASE_URL hides it from ps',
  path: ['store', 'url'],
};

const opsListenFlag: Flag = {
  name: 'ops-listen',
  value: 'HOST:PORT',
  text: 'Probes and metrics (0.0.0.0:9090)',
  path: ['listen', 'ops'],
};
const listenFlags: readonly Flag[] = [
  {
    name: 'listen',
    value: 'HOST:PORT',
    text: 'Where clients connect (0.0.0.0:8080)',
    path: ['listen', 'data'],
  },
  opsListenFlag,
];
const embeddedFlag: Flag = {
  name: 'embedded',
  text: 'A PostgreSQL of this process alone, to try it out',
  path: ['store', 'embedded'],
};
const dataDirFlag: Flag = {
  name: 'data-dir',
  value: 'DIR',
  text: 'Where that keeps its data (.oncegate)',
  path: ['store', 'dataDir'],
};

const findFlags: readonly Flag[] = [
  { name: 'key', value: 'KEY', text: "Instead of an ID: the client's key; with --path it is found at once" },
  { name: 'method', value: 'METHOD', text: 'With --key: only of this method' },
  { name: 'tenant', value: 'TENANT', text: 'With --key, or list: only of this tenant' },
  {
    name: 'path',
    value: 'PATH',
    text: 'With --key, or list: only of this path, as it was sent, without its query',
  },
];

export const commands: readonly Command[] = [
  {
    name: 'serve',
    usage: 'serve [URL] [flags]',
    summary: 'Stand in front of the service at URL',
    maxWords: 1,
    flags: [configFlag, ...listenFlags, databaseFlag, embeddedFlag, dataDirFlag],
    notes: [
      'A flag wins over the environment, that over the file, that over the default. Every field has a variable:',
      'upstream.url is ONCEGATE_UPSTREAM_URL, store.poolSize is ONCEGATE_STORE_POOL_SIZE. With _FILE added it names a',
      'file that holds the value. Stops on SIGTERM and Ctrl-C once running requests are answered.',
    ],
    examples: [
      'oncegate serve http://127.0.0.1:3000 --embedded',
      'DATABASE_URL=postgres://user:password@db/oncegate oncegate serve --config oncegate.yaml',
    ],
  },
  {
    name: 'demo',
    usage: 'demo [flags]',
    summary: 'Try it: an embedded store and a small payments service',
    maxWords: 0,
    flags: [...listenFlags, dataDirFlag],
    notes: ['Prints five steps to try. Listens on 127.0.0.1 unless told otherwise; stops on Ctrl-C.'],
    examples: ['oncegate demo', 'oncegate demo --listen 127.0.0.1:8000'],
  },
  {
    name: 'validate',
    usage: 'validate [URL] [flags]',
    summary: 'Check the configuration and show what it guards',
    maxWords: 1,
    flags: [configFlag, ...listenFlags, databaseFlag],
    notes: [
      'Takes what serve takes and starts nothing. Every fault is shown with file:line:column and what to write instead;',
      'risky settings are warned of. Exit 0 when serve would accept it, else 2.',
    ],
    examples: ['oncegate validate --config oncegate.yaml'],
  },
  {
    name: 'migrate',
    usage: 'migrate up|status|sql [flags]',
    summary: "Bring the store's schema up to date, look at it, or print it",
    maxWords: 1,
    flags: [
      configFlag,
      databaseFlag,
      {
        name: 'accept-identity',
        text: 'up: the tenant source, scope or key sources were changed on purpose',
      },
    ],
    notes: [
      'up applies what is missing. status says what that is; exit 3 if there is any. sql prints all of it for your own tools.',
      'With --accept-identity keys that were stored under the old settings are no longer found: their retries run again. Stop every instance first: it is refused while one has a live lease.',
    ],
    examples: [
      'oncegate migrate up --database-url postgres://user:password@db/oncegate',
      'oncegate migrate sql > schema.sql',
    ],
  },
  {
    name: 'keys',
    usage: 'keys list|show|resolve|purge [ID] [flags]',
    summary: 'See the keys whose outcome is unknown, and settle them',
    maxWords: 2,
    flags: [
      configFlag,
      databaseFlag,
      embeddedFlag,
      dataDirFlag,
      ...findFlags,
      {
        name: 'state',
        value: 'STATE',
        text: 'list: in_progress, completed, failed_retryable, unknown or dead_letter',
      },
      { name: 'older-than', value: '10m', text: 'list: reserved at least so long ago' },
      { name: 'limit', value: 'N', text: 'list: at most so many (50)' },
      { name: 'answer', text: 'show: headers and body of the stored answer too' },
      { name: 'completed', text: 'resolve: it ran; retries get the answer given here' },
      { name: 'released', text: 'resolve: it did not run; the next retry runs' },
      { name: 'status', value: '201', text: 'resolve --completed: status of that answer' },
      {
        name: 'header',
        value: "'Name: value'",
        text: 'resolve --completed: a header of it; several times',
        repeats: true,
      },
      { name: 'body', value: 'TEXT', text: 'resolve --completed: its body; empty without this' },
      { name: 'body-file', value: 'FILE', text: 'resolve --completed: its body, byte for byte' },
      { name: 'retention', value: '7d', text: "resolve: how long that is kept (the route's retention)" },
      { name: 'reason', value: 'TEXT', text: 'resolve, purge: why; kept with who and when' },
      { name: 'actor', value: 'NAME', text: 'resolve, purge: who (user@host)' },
      { name: 'epoch', value: 'N', text: 'resolve, purge: only if it still is this one, as show prints it' },
      { name: 'yes', text: 'resolve, purge: do not ask; needed where nobody can be asked' },
      { name: 'json', text: 'For scripts: one array (list) or object' },
    ],
    notes: [
      'list shows what waits for somebody, oldest first: unknown and dead_letter. An ID is what list shows, keyHash in the',
      'logs; its beginning will do where that is one record. show says all about one, and what to type next.',
      'resolve ends an unknown outcome, once the upstream was asked. purge forgets a stored answer: the next retry after a',
      'minute runs again. Exit 0 done, 1 not done (not found, several, or somebody was first), 2 misuse.',
    ],
    examples: [
      'oncegate keys list --config oncegate.yaml',
      'oncegate keys show 3f2a9c0d11e4b7a6',
      "oncegate keys resolve 3f2a9c0d11e4b7a6 --completed --status 201 --body-file charge.json --retention 7d --reason 'bank says paid'",
      "oncegate keys resolve 3f2a9c0d11e4b7a6 --released --reason 'not in the ledger, TICKET-7'",
    ],
  },
  {
    name: 'doctor',
    usage: 'doctor [URL] [flags]',
    summary: 'Check config, store, upstream and ports; say what to do',
    maxWords: 1,
    flags: [
      configFlag,
      ...listenFlags,
      databaseFlag,
      embeddedFlag,
      dataDirFlag,
      { name: 'json', text: 'As one JSON object: ok, and the checks' },
    ],
    notes: [
      'Takes what serve takes. One line per check: ✓ well, ! a risk, ✗ a fault, - not looked at. Read-only, except for one test',
      'key that it writes and deletes; it connects to the upstream and sends nothing. Exit 0 without ✗, with or without',
      'warnings; else the code that serve would end with for the first ✗.',
    ],
    examples: ['oncegate doctor --config oncegate.yaml', 'oncegate doctor http://127.0.0.1:3000 --json'],
  },
  {
    name: 'healthcheck',
    usage: 'healthcheck [flags]',
    summary: 'Ask the sidecar of this machine whether it lives, for container probes',
    maxWords: 0,
    flags: [
      { name: 'ready', text: 'Whether it takes requests too (/readyz); without it only /livez' },
      configFlag,
      opsListenFlag,
    ],
    notes: ['Exit 0 when it does, else 1. Finds the ops port by the same file and variables as serve.'],
    examples: ['oncegate healthcheck', 'oncegate healthcheck --ready --ops-listen 127.0.0.1:9090'],
  },
  {
    name: 'schema',
    usage: 'schema',
    summary: 'Print the JSON Schema (draft-07) of the config file, for editors',
    maxWords: 0,
    flags: [],
    notes: [
      'Editors that know YAML complete and check the file when its first line is',
      '  # yaml-language-server: $schema=./oncegate.schema.json',
    ],
    examples: ['oncegate schema > oncegate.schema.json'],
  },
  {
    name: 'version',
    usage: 'version [--json]',
    summary: 'Print the version',
    maxWords: 0,
    flags: [{ name: 'json', text: 'As one JSON object, with the Node version' }],
    notes: [],
    examples: ['oncegate version --json'],
  },
  {
    name: 'help',
    usage: 'help [command]',
    summary: 'Print this, or the help of one command',
    maxWords: 1,
    flags: [],
    notes: [],
    examples: ['oncegate help serve'],
  },
];
