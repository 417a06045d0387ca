/** Helm and kubeconform, built from their Go modules, and Kubernetes' own schemas; all in the cache, by version. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { attempt, cacheDir, check, run, step } from './steps.mjs';

const helm = { name: 'helm', module: 'helm.sh/helm/v4/cmd/helm', version: 'v4.3.1' };
const kubeconform = {
  name: 'kubeconform',
  module: 'github.com/yannh/kubeconform/cmd/kubeconform',
  version: 'v0.8.0',
};
/** A Python package that carries the schemas of many Kubernetes versions. */
const schemas = { name: 'kubernetes-validate', version: '1.37.0' };

export async function chartTools(kubernetesVersions) {
  return {
    helm: await goTool(helm),
    kubeconform: await goTool(kubeconform),
    schemasOf: await kubernetesSchemas(kubernetesVersions),
  };
}

async function goTool({ name, module, version }) {
  const dir = join(cacheDir, `${name}-${version}`);
  const file = join(dir, name);
  if (existsSync(file)) return file;
  check(
    attempt('go', ['version']).status === 0,
    `The chart check builds ${name} with Go, which is not installed: https://go.dev/dl/`,
  );
  await step(`Building ${name} ${version} (minutes, only the first time)`, () => {
    const env = { ...process.env, GOBIN: dir, CGO_ENABLED: '0' };
    run('go', ['install', '-ldflags=-s -w', `${module}@${version}`], { env });
  });
  return file;
}

/** Gives the place of a version's schemas, as kubeconform takes it. */
async function kubernetesSchemas(kubernetesVersions) {
  const dir = join(cacheDir, `${schemas.name}-${schemas.version}`);
  const place = (version) => join(dir, `v${version}`);
  if (!kubernetesVersions.every((version) => existsSync(place(version)))) {
    check(
      attempt('python3', ['-m', 'pip', '--version']).status === 0,
      'The chart check needs python3 with pip.',
    );
    await step("Kubernetes' schemas (only the first time)", () => download(kubernetesVersions, place));
  }
  return (version) => join(place(version), '{{.ResourceKind}}{{.KindSuffix}}.json');
}

function download(kubernetesVersions, place) {
  const dir = mkdtempSync(join(cacheDir, 'schemas-'));
  try {
    const wanted = `${schemas.name}==${schemas.version}`;
    run('python3', [
      '-m',
      'pip',
      'download',
      '--quiet',
      '--no-deps',
      '--only-binary=:all:',
      '--dest',
      dir,
      wanted,
    ]);
    const wheel = readdirSync(dir).find((name) => name.endsWith('.whl'));
    run('python3', ['-m', 'zipfile', '-e', join(dir, wheel), dir]);
    for (const version of kubernetesVersions) {
      const made = join(dir, version);
      makeLocal(join(dir, 'kubernetes_validate/kubernetes-json-schema', `v${version}-local-strict`), made);
      rmSync(place(version), { recursive: true, force: true });
      mkdirSync(join(place(version), '..'), { recursive: true });
      renameSync(made, place(version));
    }
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** They name themselves and each other by addresses on the web, where kubeconform would look for them. */
function makeLocal(from, to) {
  mkdirSync(to);
  for (const name of readdirSync(from)) {
    const { $id: _, ...schema } = JSON.parse(readFileSync(join(from, name), 'utf8'));
    const text = JSON.stringify(schema).replaceAll('"/api/_definitions.json#', '"_definitions.json#');
    writeFileSync(join(to, name), text);
  }
}
