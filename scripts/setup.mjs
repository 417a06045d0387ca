/**
 * Makes a fresh clone ready, and does nothing when it is: `node scripts/setup.mjs install|build|test …`.
 * Plain Node without packages, for it runs before there are any.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Milliseconds for npm's registry to answer. */
const pingMs = 6_000;
/** npm's codes for "nobody answered". Others come from a registry, or from npm itself. */
const noNetwork = new Set(
  'FETCH_ERROR ENOTFOUND EAI_AGAIN ECONNREFUSED ECONNRESET ETIMEDOUT EHOSTUNREACH ENETUNREACH ENETDOWN ERR_SOCKET_TIMEOUT'.split(
    ' ',
  ),
);
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const at = (...parts) => join(root, ...parts);
const say = (line) => process.stderr.write(`${line}\n`);

function fail(line) {
  say(line);
  process.exit(1);
}

function checkNode() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  fail(`Oncegate needs Node.js 20.19 or newer, and this is ${process.version}. See https://nodejs.org/`);
}

/**
 * Of the content of files, and of all files in folders. Not of the version of Node.js: no package is compiled for one, and a clone
 * that is run by two in turn would be built anew each time.
 */
function hashOf(...paths) {
  const hash = createHash('sha256').update(`${process.platform} ${process.arch}`);
  for (const path of paths.flatMap(filesOf)) hash.update(`\0${path}\0`).update(readFileSync(at(path)));
  return hash.digest('hex');
}

function filesOf(path) {
  if (!existsSync(at(path))) return [];
  if (!statSync(at(path)).isDirectory()) return [path];
  return readdirSync(at(path))
    .sort()
    .flatMap((name) => filesOf(join(path, name)));
}

/** Runs `work` unless `file` says that it was done for the same content. */
function once(file, hash, work) {
  if (existsSync(at(file)) && readFileSync(at(file), 'utf8') === hash) return;
  work();
  writeFileSync(at(file), hash);
}

/** Quiet when it goes well. `label` is what a person reads meanwhile. */
function run(label, command, args) {
  const failure = attempt(label, command, args);
  if (failure !== undefined) fail(`${failure}\n${label}: failed`);
}

function attempt(label, command, args) {
  const began = Date.now();
  say(`${label} …`);
  const done = spawnSync(command, args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  if (done.status === 0) return void say(`  done in ${((Date.now() - began) / 1000).toFixed(1)} s`);
  return done.error?.message ?? `${done.stdout}${done.stderr}`.trim().split('\n').slice(-40).join('\n');
}

function install() {
  once('node_modules/.oncegate-stamp', hashOf('package.json', 'package-lock.json'), () => {
    if (isInstalled()) return;
    const cli = process.env.npm_execpath ?? '';
    const [command, ...args] = cli.endsWith('npm-cli.js') ? [process.execPath, cli] : ['npm'];
    // Install scripts are off everywhere, as npm 11 has it: nothing here needs one.
    const always = ['--include=dev', '--include=optional', '--ignore-scripts', '--no-audit', '--no-fund'];
    // Called by `npm pack --dry-run` or `npm install --global`, npm would hand these on to the npm below it.
    const options = [...always, '--no-dry-run', '--no-global'];
    const label = 'Installing packages (a minute, only this time)';
    const cause = unreachable(command, args);
    if (cause !== null) {
      // Every package may be in npm's cache all the same.
      const failure = attempt(label, command, [...args, 'ci', '--offline', ...options]);
      if (failure === undefined) return;
      fail(
        `npm cannot reach its registry (${cause}), and its cache does not hold all packages.\n` +
          'Connect to the network, or set the registry or proxy of npm (npm config set registry|proxy …), and try again.',
      );
    }
    if (existsSync(at('package-lock.json')) && !attempt(label, command, [...args, 'ci', ...options])) return;
    // No lock file, or one that was written where some platforms' packages were missing, which `npm ci` refuses.
    run('Installing packages with npm install', command, [...args, 'install', '--no-save', ...options]);
  });
}

/**
 * Why npm's registry does not answer, or null. Asked once and for a few seconds: `npm ci` itself would try for minutes without a
 * word. A registry that knows no ping but answers is reachable.
 */
function unreachable(command, args) {
  const asked = spawnSync(command, [...args, 'ping', '--fetch-retries=0', `--fetch-timeout=${pingMs}`], {
    cwd: root,
    encoding: 'utf8',
    timeout: 2 * pingMs,
  });
  if (asked.status === 0) return null;
  if (asked.error?.code === 'ETIMEDOUT') return 'no answer in time';
  const code = /npm (?:error|ERR!) code (\w+)/.exec(asked.stderr)?.[1] ?? '';
  return noNetwork.has(code) ? code : null;
}

/** npm writes what it has installed to a lock file of its own: somebody may have run it by hand. */
function isInstalled() {
  if (!existsSync(at('node_modules/.package-lock.json')) || !existsSync(at('package-lock.json')))
    return false;
  const packages = (file) => JSON.parse(readFileSync(at(file), 'utf8')).packages;
  const installed = packages('node_modules/.package-lock.json');
  return Object.entries(packages('package-lock.json')).every(([path, wanted]) => {
    if (path === '') return true;
    if (installed[path]) return installed[path].version === wanted.version;
    if (!wanted.optional) return false;
    const { os, cpu, libc } = wanted;
    return !(os?.includes(process.platform) && cpu?.includes(process.arch) && !libc?.includes('musl'));
  });
}

function build() {
  once(
    'dist/.stamp',
    hashOf('src', 'migrations', 'tsconfig.json', 'tsconfig.build.json', 'package-lock.json'),
    () => {
      rmSync(at('dist'), { recursive: true, force: true });
      run('Building', process.execPath, [at('node_modules/.bin/tsc'), '-p', 'tsconfig.build.json']);
    },
  );
}

function prepareTests() {
  // With the place, for what `tap build` makes holds absolute paths: a moved clone needs it again.
  once('node_modules/.oncegate-tap-stamp', `${root} ${hashOf('package-lock.json', '.taprc')}`, () => {
    run('Preparing the test runner', process.execPath, [at('node_modules/.bin/tap'), 'build']);
  });
}

const steps = { install: [install], build: [install, build], test: [install, prepareTests] };

checkNode();
for (const name of process.argv.slice(2)) {
  if (!Object.hasOwn(steps, name)) fail(`usage: node scripts/setup.mjs ${Object.keys(steps).join('|')} …`);
  for (const step of steps[name]) step();
}
