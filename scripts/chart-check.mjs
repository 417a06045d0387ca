/**
 * Renders the chart with each helm/oncegate/ci/*-values.yaml and looks at what comes out: Kubernetes accepts it, Oncegate
 * accepts the configuration in it, and values that cannot work are refused with a reason. Needs Go and python3 with pip.
 *   npm run check:chart
 */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  chart,
  checkEveryField,
  checkExample,
  checkRefused,
  checkRolls,
  checkValues,
  kubernetes,
} from './chart-cases.mjs';
import { refused } from './chart-refused.mjs';
import { chartTools } from './chart-tools.mjs';
import { attempt, check, main, run, step } from './steps.mjs';

await main('chart', async () => {
  await step('Packages and build of this clone', () => run(process.execPath, ['scripts/setup.mjs', 'build']));
  const tools = await chartTools(Object.values(kubernetes).flat());
  const dir = mkdtempSync(join(tmpdir(), 'oncegate-chart-'));
  const bench = openBench(tools, dir);
  try {
    for (const name of readdirSync(join(chart, 'ci')))
      await step(`ci/${name}`, () => checkValues(bench, join(chart, 'ci', name)));
    await step('Every field of config.example.yaml', () => checkEveryField(bench));
    await step('A change of config rolls the pods', () => checkRolls(bench));
    await step(`${refused.length} kinds of values are refused`, () =>
      refused.forEach((values) => checkRefused(bench, values)),
    );
    await step('examples/native-sidecar.yaml', () => checkExample(bench));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

/** What a case asks with: Helm, Kubernetes' schemas, Oncegate itself. `dir` is for its files. */
function openBench({ helm, kubeconform, schemasOf }, dir) {
  const homes = ['CACHE', 'CONFIG', 'DATA'].map((kind) => [`HELM_${kind}_HOME`, join(dir, kind)]);
  const env = { ...process.env, ...Object.fromEntries(homes) };
  const writeFile = (name, text) => {
    const file = join(dir, name);
    writeFileSync(file, text);
    return file;
  };
  return {
    writeFile,
    helm: (...args) => attempt(helm, args, { env }),
    conform(text, versions) {
      for (const version of versions) {
        const args = ['-strict', '-kubernetes-version', version, '-schema-location', schemasOf(version)];
        run(kubeconform, args, { input: text });
      }
    },
    validate(text) {
      const file = writeFile('config.yaml', text);
      const database = { DATABASE_URL: 'postgres://user:password@host/database' };
      const args = ['dist/cli/oncegate.js', 'validate', '--config', file];
      const said = run(process.execPath, args, { env: { ...env, ...database } });
      check(!said.includes('warning'), said);
    },
  };
}
