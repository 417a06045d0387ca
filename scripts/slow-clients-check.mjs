/**
 * Whether clients that are slow on purpose take the service from others: slowhttptest sends heads (-H) and bodies (-B) in drops
 * and reads answers in drops (-X), over more connections than there are to the upstream, while a prober asks four times a second.
 *   node scripts/slow-clients-check.mjs
 */
import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, createServer, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { canInstall, installPackages, missingTools } from './debian.mjs';
import { root } from './steps.mjs';

/** The attack; more connections than `upstream.connections`. */
const connections = 100;
const perSecond = 25;
const attackSeconds = 11;
const upstreamConnections = 32;
/** Milliseconds in which the prober has its answer, all along. */
const mostMs = 2_000;
const probeEveryMs = 250;
const answerBytes = 900_000;

const missing = missingTools(['slowhttptest']);
if (missing.length > 0 && !canInstall()) {
  console.log('left out: slowhttptest is not installed (as root: apt-get install slowhttptest)');
  process.exit(0);
}
installPackages(missing);

const large = Buffer.alloc(answerBytes, 'x');
const upstream = createServer((req, res) => {
  req.resume();
  req.on('end', () => res.writeHead(201).end(req.url.endsWith('large') ? large : 'ok'));
});
await new Promise((resolve) => upstream.listen(0, '127.0.0.1', resolve));

const dir = mkdtempSync(join(tmpdir(), 'oncegate-slow-'));
// Under root the embedded PostgreSQL runs as nobody.
chmodSync(dir, 0o755);
// A header that slowhttptest sends stands for the key: else its guarded requests would be refused by their heads.
writeFileSync(
  join(dir, 'config.yaml'),
  `listen: { data: "127.0.0.1:0", ops: "127.0.0.1:0" }
upstream: { url: "http://127.0.0.1:${upstream.address().port}", connections: ${upstreamConnections} }
key: { from: ["header:Referer", "header:Idempotency-Key"] }
drain: { delay: 0s, max: 1s }
routes: [ { path: "/open/*", mode: "off" } ]
`,
);
const sidecar = spawn(
  process.execPath,
  [
    '--import=tsx',
    join(root, 'src/cli/oncegate.ts'),
    'serve',
    '--embedded',
    '--data-dir',
    join(dir, 'data'),
  ].concat('--config', join(dir, 'config.yaml')),
  { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] },
);
const gone = new Promise((resolve) => sidecar.once('exit', resolve));
const { data } = await new Promise((resolve, reject) => {
  void gone.then((code) => reject(new Error(`oncegate ended with ${code}`)));
  createInterface({ input: sidecar.stdout }).on('line', (line) => {
    const said = JSON.parse(line);
    if (said.msg === 'serving') resolve(said);
  });
});

const agent = new Agent({ keepAlive: false });
let probes = 0;

/** Milliseconds to an answer with the wanted status; else why not. */
function probe(path, guarded) {
  const beganMs = performance.now();
  const headers = guarded
    ? { 'Idempotency-Key': `probe-${process.pid}-${++probes}`, 'Content-Type': 'application/json' }
    : {};
  return new Promise((resolve) => {
    const req = request(`${data}${path}`, { agent, method: guarded ? 'POST' : 'GET', headers }, (res) => {
      res.resume();
      res.on('error', (error) => resolve({ fault: error.message }));
      res.on('end', () => {
        const ms = performance.now() - beganMs;
        if (res.statusCode !== 201) resolve({ fault: `status ${res.statusCode}` });
        else resolve(ms > mostMs ? { fault: `${Math.round(ms)} ms` } : { ms });
      });
    });
    req.on('error', (error) => resolve({ fault: error.message }));
    req.setTimeout(2 * mostMs, () => req.destroy(new Error(`nothing within ${2 * mostMs} ms`)));
    req.end(guarded ? '{"amount":1}' : undefined);
  });
}

async function attack(name, args) {
  // Its output tells the state each 5 s; only its end counts here.
  const child = spawn(
    'slowhttptest',
    [...args, '-c', connections, '-r', perSecond, '-l', attackSeconds].map(String),
    {
      stdio: 'ignore',
    },
  );
  let running = true;
  const ended = new Promise((resolve) => child.once('exit', resolve)).then(() => {
    running = false;
  });
  const asked = [];
  while (running) {
    asked.push(probe('/open/quick', false), probe('/quick', true));
    await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, probeEveryMs))]);
  }
  const seen = await Promise.all(asked);
  const faults = seen.flatMap(({ fault }) => fault ?? []);
  const slowest = Math.round(Math.max(0, ...seen.map(({ ms }) => ms ?? 0)));
  const verdict = faults.length === 0 ? 'passed' : `FAILED ${faults.length} times, first by ${faults[0]}`;
  console.log(`${name}: ${verdict}; ${seen.length} probes, the slowest answer after ${slowest} ms`);
  return faults.length === 0;
}

const tally = { passed: 0, failed: 0 };
try {
  for (const [where, path] of [
    ['not guarded', '/open'],
    ['guarded', ''],
  ]) {
    const url = (name) => ['-u', `${data}${path}/${name}`];
    for (const [name, args] of [
      ['slow heads', ['-H', '-i', 1, ...url('quick')]],
      ['slow bodies', ['-B', '-i', 1, '-s', 500_000, '-x', 10, ...url('quick')]],
      // Guarded only as a POST: one runs, and all others get the stored answer.
      [
        'slow reading',
        ['-X', '-t', path === '' ? 'POST' : 'GET', '-w', 512, '-y', 1024, '-n', 1, '-z', 32, ...url('large')],
      ],
    ]) {
      if (await attack([name, where].join(', '), args)) tally.passed += 1;
      else tally.failed += 1;
    }
  }
} finally {
  sidecar.kill('SIGTERM');
  await gone;
  upstream.closeAllConnections();
  upstream.close();
  rmSync(dir, { recursive: true, force: true });
}
console.log(`${tally.passed} passed, ${tally.failed} failed`);
process.exitCode = tally.failed === 0 ? 0 : 1;
