import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';
import { parse, parseAllDocuments } from 'yaml';
import { chartSchema } from '../../scripts/chart-schema.ts';
import { loadConfig } from '../../src/config/load.ts';
import { workerFlags } from '../../src/memory.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
const { version } = JSON.parse(read('package.json')) as { version: string };

interface Port {
  readonly name: string;
  readonly containerPort: number;
}
interface Container {
  readonly name: string;
  readonly image: string;
  readonly restartPolicy?: string;
  readonly ports?: readonly Port[];
}
interface Manifest {
  readonly kind: string;
  readonly data: Readonly<Record<string, string>>;
  readonly spec: {
    readonly ports: readonly { readonly targetPort: string }[];
    readonly template: {
      readonly spec: {
        readonly initContainers: readonly Container[];
        readonly terminationGracePeriodSeconds: number;
      };
    };
  };
}

t.test('chart and image have the version of the package', async (t) => {
  const chart = parse(read('helm/oncegate/Chart.yaml')) as { version: string; appVersion: string };
  t.equal(chart.version, version);
  t.equal(chart.appVersion, version);
  t.match(read('Dockerfile'), `org.opencontainers.image.version="${version}"`);
});

t.test('the image is built with nothing but what it needs to know', async (t) => {
  const dockerfile = read('Dockerfile');
  const copied = ['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json'];
  t.same(
    read('.dockerignore')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#')),
    ['*', ...copied.map((name) => `!${name}`), '!src', '!migrations', '!LICENSE'],
  );
  t.match(dockerfile, /^USER 10001:10001$/m);
  t.notMatch(dockerfile, /^(ENTRYPOINT|CMD) (?!\[)/m, 'a shell as process 1 would keep SIGTERM to itself');
});

t.test('the ports are the defaults of the configuration', async (t) => {
  const { listen } = loadConfig({ env: {} });
  t.match(read('Dockerfile'), `EXPOSE ${listen.data.port} ${listen.ops.port}\n`);
  const template = read('helm/oncegate/templates/_config.tpl');
  t.match(template, `"name" "data" "default" ${listen.data.port})`);
  t.match(template, `"name" "ops" "default" ${listen.ops.port})`);
});

t.test('the image gives the heap the part that workers share', async (t) => {
  const given = /NODE_OPTIONS="(.*)"/.exec(read('Dockerfile'))?.[1] ?? '';
  t.match(given, '--max-semi-space-size=16');
  t.same(workerFlags(1, 512 * 1_048_576, given), [
    given.split(' ').find((flag) => flag.includes('percentage')),
  ]);
});

t.test('the times of a drain are the defaults of the configuration', async (t) => {
  const { drain } = loadConfig({ env: {} });
  const template = read('helm/oncegate/templates/_config.tpl');
  t.match(template, `"name" "delay" "default" "${drain.delayMs / 1000}s"`);
  t.match(template, `"name" "max" "default" "${drain.maxMs / 1000}s"`);
});

t.test('the values schema knows every field of the configuration', async (t) => {
  t.equal(read('helm/oncegate/values.schema.json'), chartSchema(), 'else run: npm run docs');
});

t.test('the values schema is strict and has what values.yaml has', async (t) => {
  const schema = JSON.parse(read('helm/oncegate/values.schema.json')) as {
    $schema: string;
    additionalProperties: boolean;
    properties: Record<string, unknown>;
  };
  t.equal(schema.$schema, 'http://json-schema.org/draft-07/schema#');
  t.equal(schema.additionalProperties, false);
  const values = parse(read('helm/oncegate/values.yaml')) as Record<string, unknown>;
  const { global: _, ...own } = schema.properties;
  t.same(Object.keys(own).sort(), Object.keys(values).sort());
});

t.test('no value does nothing', async (t) => {
  const folder = 'helm/oncegate/templates';
  const templates = readdirSync(new URL(`../../${folder}`, import.meta.url)).map((name) =>
    read(`${folder}/${name}`),
  );
  for (const name of Object.keys(parse(read('helm/oncegate/values.yaml')) as object))
    t.ok(
      templates.some((text) => text.includes(`.Values.${name}`)),
      name,
    );
});

t.test('the native sidecar', async (t) => {
  const manifests = parseAllDocuments(read('helm/oncegate/examples/native-sidecar.yaml')).map(
    (document) => document.toJS() as Manifest,
  );
  const find = (kind: string) => manifests.find((manifest) => manifest.kind === kind) as Manifest;
  const pod = find('Deployment').spec.template.spec;
  const [migrate, sidecar] = pod.initContainers as [Container, Container];
  const config = loadConfig({ text: find('ConfigMap').data['config.yaml'] ?? '', env: {} });

  t.same(config.warnings, []);
  t.equal(sidecar.restartPolicy, 'Always');
  for (const { image } of [migrate, sidecar]) t.equal(image, `registry.example/oncegate:${version}`);
  t.same(sidecar.ports, [
    { name: 'oncegate', containerPort: config.listen.data.port },
    { name: 'ops', containerPort: config.listen.ops.port },
  ]);
  t.same(
    find('Service').spec.ports.map(({ targetPort }) => targetPort),
    ['oncegate'],
  );
  t.ok(pod.terminationGracePeriodSeconds * 1000 > config.drain.delayMs + config.drain.maxMs);
});
