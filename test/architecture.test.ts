import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import t from 'tap';

/** Who may import what, as ARCHITECTURE.md says it. A room is a folder of src; `.` are the files beside them. */
interface Room {
  readonly rooms: readonly string[];
  readonly packages: readonly string[];
  /** Built-ins are free, except where this lists the only ones. */
  readonly builtins?: readonly string[];
}

const rooms: Readonly<Record<string, Room>> = {
  core: { rooms: [], packages: [], builtins: ['node:crypto'] },
  config: { rooms: ['core', 'errors'], packages: ['zod', 'yaml'] },
  store: { rooms: ['core', 'errors'], packages: [] },
  'store/postgres': { rooms: ['core', 'store', 'errors', 'failpoint'], packages: ['pg'] },
  upstream: { rooms: ['core', 'errors', 'failpoint'], packages: ['undici'] },
  proxy: {
    rooms: ['core', 'store', 'upstream', 'events', 'errors', 'failpoint'],
    packages: ['fastify', '@fastify/http-proxy', 'undici', 'ws'],
  },
  loops: { rooms: ['core', 'store', 'upstream', 'events', 'errors'], packages: [] },
  // The command line stands on it, and so may an API: it knows neither a process nor a terminal.
  operator: { rooms: ['core', 'store', 'errors', 'events'], packages: [], builtins: [] },
  ops: { rooms: ['errors', 'events'], packages: ['fastify'] },
  telemetry: { rooms: ['core', 'events'], packages: ['pino', 'prom-client'] },
  // It judges facts that others gather.
  doctor: { rooms: ['config', 'store/postgres', 'upstream', 'errors'], packages: [], builtins: [] },
  // Wiring.
  cli: {
    rooms: [
      'config',
      'core',
      'store',
      'store/postgres',
      'upstream',
      'operator',
      'doctor',
      'telemetry',
      'ops',
      'main',
      'listen',
      'events',
      'memory',
      'errors',
    ],
    packages: [],
  },
  // One instance, and its end. No servers and no concrete store: the simulation assembles it too.
  instance: { rooms: ['config', 'core', 'store', 'proxy', 'loops'], packages: [], builtins: [] },
  drain: { rooms: ['instance', 'errors'], packages: [], builtins: [] },
  main: {
    rooms: [
      'config',
      'doctor',
      'core',
      'store/postgres',
      'upstream',
      'instance',
      'drain',
      'proxy',
      'ops',
      'telemetry',
      'listen',
      'memory',
    ],
    packages: [],
  },
  listen: { rooms: ['config', 'errors'], packages: ['fastify'] },
  // Types only.
  events: { rooms: ['core', 'store'], packages: [] },
  memory: { rooms: [], packages: [], builtins: ['node:os'] },
  errors: { rooms: [], packages: [] },
  failpoint: { rooms: [], packages: [] },
};

const src = resolve(import.meta.dirname, '../src');

function filesIn(dir: string): string[] {
  return readdirSync(dir, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'))
    .map((name) => join(dir, name));
}

function roomOf(file: string): string {
  const path = relative(src, file);
  if (path.startsWith('store/postgres/')) return 'store/postgres';
  const [first = ''] = path.split('/');
  return first.replace(/\.ts$/, '');
}

function importsOf(text: string): string[] {
  return [...text.matchAll(/\b(?:from |import\()'([\w@./:-]+)'/g)].map((match) => match[1] as string);
}

t.test('every import is one that its room may make', async (t) => {
  for (const file of filesIn(src)) {
    const name = relative(src, file);
    const room = roomOf(file);
    const allowed = rooms[room];
    if (allowed === undefined) {
      t.fail(`${name}: no room ${room}`);
      continue;
    }
    for (const target of importsOf(readFileSync(file, 'utf8'))) {
      const where = `${name} imports ${target}`;
      if (target.startsWith('node:')) t.ok(allowed.builtins?.includes(target) ?? true, where);
      else if (target.startsWith('.')) {
        const other = roomOf(resolve(dirname(file), target));
        t.ok(other === room || allowed.rooms.includes(other), where);
      } else t.ok(allowed.packages.includes(target), where);
    }
  }
});

t.test('core is pure: no clock, no randomness, no process', async (t) => {
  for (const file of filesIn(join(src, 'core'))) {
    const code = readFileSync(file, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
    t.notMatch(
      code,
      /\b(Date|setTimeout|setInterval|setImmediate|Math\.random|process|performance|randomUUID|randomBytes)\b/,
      relative(src, file),
    );
  }
});

/** Statements at the top of a module: the formatter indents all that stands inside of them. */
function statementsOf(code: string): string[] {
  return code.split(/^(?=[^\s)}\]`])/m).filter((statement) => statement.trim() !== '');
}

/**
 * What a statement at the top of a module of core may be. A value is a literal, or an expression without the flags `g` and `y`, whose
 * lastIndex is a state, or of a type that nobody can write to.
 */
const stateless = [
  /^import\b/,
  /^(export )?(interface|type|(async )?function|class)\b/,
  /^(export )?const \w+ =\s+(['"`\d-]|\/.*\/[imsu]*;)/,
  /^(export )?const \w+ = new RegExp\((?![\s\S]*'[a-z]*[gy][a-z]*',?\s*\);\s*$)/,
  /^(export )?const \w+ =[\s\S]* as const\b[^;]*;\s*$/,
  /^(export )?const \w+: (string =|number =|readonly |Readonly)(?![\s\S]*(\bnew (?!Set\b)|\bcreate))/,
  // Each call decodes a whole body, and so begins anew.
  /^const utf8 = new TextDecoder\('utf-8', \{ fatal: true \}\);/,
];

t.test('core has no state in its modules: what is remembered is passed in', async (t) => {
  for (const file of filesIn(join(src, 'core'))) {
    const name = relative(src, file);
    const code = readFileSync(file, 'utf8').replaceAll(/^\s*\/\*[\s\S]*?\*\/|(^|\s)\/\/.*/gm, '');
    for (const statement of statementsOf(code)) {
      const where = `${name}: ${statement.split('\n')[0]}`;
      t.ok(
        stateless.some((form) => form.test(statement)),
        where,
      );
      t.notMatch(statement, /^\s+(\w+ )*static\b/m, where);
    }
  }
});

t.test('operator knows no process, no terminal and no command line', async (t) => {
  for (const file of filesIn(join(src, 'operator'))) {
    const code = readFileSync(file, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
    t.notMatch(
      code,
      /\b(process|stdin|stdout|stderr|console|exitCode)\b|['"` ]--\w|oncegate keys/,
      relative(src, file),
    );
  }
});

t.test('SQL stands only in store/postgres/sql and in migrations', async (t) => {
  const sql = /\b(SELECT\b[^']*\bFROM|INSERT INTO|UPDATE\s+\S+\s+(AS \S+\s+)?SET|DELETE FROM)\b/;
  for (const file of filesIn(src)) {
    const name = relative(src, file);
    if (name.startsWith('store/postgres/sql/')) continue;
    const code = readFileSync(file, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
    t.notMatch(code, sql, name);
  }
});

t.test('the request path does not parse bodies', async (t) => {
  for (const file of filesIn(join(src, 'proxy'))) {
    t.notMatch(readFileSync(file, 'utf8'), /JSON\.parse/, relative(src, file));
  }
});
