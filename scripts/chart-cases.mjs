import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { check, root } from './steps.mjs';

export const chart = join(root, 'helm/oncegate');

/** The oldest and the newest that each is checked with. */
export const kubernetes = {
  // From Chart.yaml's kubeVersion on.
  chart: ['1.25.0', '1.37.0'],
  // Native sidecars are on by default from here.
  example: ['1.29.0', '1.37.0'],
};

/** Only when it is needed: a fresh clone has no packages before its first step. */
const yaml = () => import('yaml');

async function documentsOf(text) {
  const { parseAllDocuments } = await yaml();
  return parseAllDocuments(text).map((document) => document.toJS());
}

export async function checkValues(bench, file) {
  const { parse } = await yaml();
  const lint = bench.helm('lint', '--strict', '--quiet', chart, '--values', file);
  check(lint.status === 0, lint.output);
  const { status, stdout, output } = bench.helm('template', 'shop', chart, '--values', file);
  check(status === 0, output);
  bench.conform(stdout, kubernetes.chart);
  const objects = await documentsOf(stdout);
  const text = objects.find(({ kind }) => kind === 'ConfigMap').data['config.yaml'];
  bench.validate(text);
  const { config } = parse(readFileSync(file, 'utf8'));
  check(isDeepStrictEqual(parse(text), config), `config was changed on its way:\n${text}`);
  checkPorts(objects, config);
}

/** The file is read at start alone: pods must change with it, and with nothing that does not concern them. */
export async function checkRolls(bench) {
  const podsWith = async (...set) => {
    const file = join(chart, 'ci/minimal-values.yaml');
    const { status, stdout, output } = bench.helm('template', 'shop', chart, '--values', file, ...set);
    check(status === 0, output);
    return JSON.stringify(
      (await documentsOf(stdout)).find(({ kind }) => kind === 'Deployment').spec.template,
    );
  };
  const before = await podsWith();
  check(
    before !== (await podsWith('--set', 'config.lease=30s')),
    'a change of config leaves the pods as they are',
  );
  check(before === (await podsWith('--set', 'service.port=81')), 'a change of the Service rolls the pods');
}

/** The example's, without the one that belongs into a Secret. */
export async function checkEveryField(bench) {
  const { parse } = await yaml();
  const config = parse(readFileSync(join(root, 'config.example.yaml'), 'utf8'));
  delete config.store.url;
  const image = { repository: 'registry.example/oncegate' };
  const text = JSON.stringify({ image, store: { existingSecret: { name: 'store' } }, config });
  // As a person writes it, where JSON has quotes around off.
  await checkValues(bench, bench.writeFile('every-field-values.yaml', text.replaceAll('"off"', 'off')));
}

export function checkRefused(bench, { what, values, says }) {
  const file = bench.writeFile('refused-values.yaml', JSON.stringify(values));
  const { status, output } = bench.helm('template', 'shop', chart, '--values', file);
  check(
    status !== 0 && says.test(output),
    `${what}: not refused with ${says}, but exit ${status}\n${output}`,
  );
}

export async function checkExample(bench) {
  const text = readFileSync(join(chart, 'examples/native-sidecar.yaml'), 'utf8');
  bench.conform(text, kubernetes.example);
  const config = (await documentsOf(text)).find(({ kind }) => kind === 'ConfigMap');
  bench.validate(config.data['config.yaml']);
}

/** Service and probes lead to the ports that Oncegate listens on, and a drain has the time that it needs. */
function checkPorts(objects, config) {
  const specOf = (kind) => objects.find((object) => object.kind === kind).spec;
  const { containers, terminationGracePeriodSeconds } = specOf('Deployment').template.spec;
  const [{ ports, startupProbe, livenessProbe, readinessProbe }] = containers;
  const portOf = (name) => ports.find((port) => port.name === name)?.containerPort;
  const wanted = (name, usual) => Number((config.listen?.[name] ?? `:${usual}`).split(':').at(-1));
  check(portOf('http') === wanted('data', 8080), `the port of clients is ${portOf('http')}`);
  check(portOf('ops') === wanted('ops', 9090), `the port of probes is ${portOf('ops')}`);
  for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe])
    check(httpGet.port === 'ops', `a probe goes to ${httpGet.port}`);
  for (const { name, targetPort } of specOf('Service').ports)
    check(portOf(targetPort) !== undefined, `the Service's ${name} leads nowhere`);
  const seconds = (text) => Number.parseInt(text, 10) * { s: 1, m: 60 }[text.replace(/\d+/, '')];
  const drain = seconds(config.drain?.delay ?? '5s') + seconds(config.drain?.max ?? '40s');
  check(
    terminationGracePeriodSeconds >= drain + 10,
    `a drain of ${drain} s has only ${terminationGracePeriodSeconds} s`,
  );
}
