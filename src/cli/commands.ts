/** Every command and flag, once: the parser, the help text and the settings that flags make all read this table. */
export interface Flag {
  readonly name: string;
  /** What its value is called; absent: the flag stands alone. */
  readonly value?: string;
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
  text: 'YAML file; config.example.yaml shows every field',
};
const databaseFlag: Flag = {
  name: 'database-url',
  value: 'URL',
  text: 'PostgreSQL of your own; DATABASE_URL hides it from ps',
  path: ['store', 'url'],
};

const listenFlags: readonly Flag[] = [
  {
    name: 'listen',
    value: 'HOST:PORT',
    text: 'Where clients connect (0.0.0.0:8080)',
    path: ['listen', 'data'],
  },
  {
    name: 'ops-listen',
    value: 'HOST:PORT',
    text: 'Probes and metrics (0.0.0.0:9090)',
    path: ['listen', 'ops'],
  },
];
const dataDirFlag: Flag = {
  name: 'data-dir',
  value: 'DIR',
  text: 'Where that keeps its data (.oncegate)',
  path: ['store', 'dataDir'],
};

export const commands: readonly Command[] = [
  {
    name: 'serve',
    usage: 'serve [URL] [flags]',
    summary: 'Stand in front of the service at URL',
    maxWords: 1,
    flags: [
      configFlag,
      ...listenFlags,
      databaseFlag,
      {
        name: 'embedded',
        text: 'A PostgreSQL of this process alone, to try it out',
        path: ['store', 'embedded'],
      },
      dataDirFlag,
    ],
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
    notes: ['Prints three curls to try. Listens on 127.0.0.1 unless told otherwise; stops on Ctrl-C.'],
    examples: ['oncegate demo', 'oncegate demo --listen 127.0.0.1:8000'],
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
      'With --accept-identity keys that were stored under the old settings are no longer found: their retries run again.',
    ],
    examples: [
      'oncegate migrate up --database-url postgres://user:password@db/oncegate',
      'oncegate migrate sql > schema.sql',
    ],
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
