import { testDatabase } from '../test/helpers/postgres.ts';
import { sidecarProcess } from '../test/helpers/sidecar.ts';
import { type Context, type Drill, finding, notVacuous, type Outcome } from './drill.ts';
import { cases } from './late-cases.ts';
import { LateScene, type Row } from './late-scene.ts';
import { SteeredUpstream } from './steered-upstream.ts';

/** Two limits: one that passes soon, and one that no suspension outlasts. */
const configFor = (upstreamUrl: string) => `
lease: 1s
loops: { sweep: 200ms }
upstream: { timeout: 5m }
defaults: { inFlight: { wait: 0s } }
routes:
  - { path: /soon, upstream: { url: ${upstreamUrl}, timeout: 1s } }`;

export const late: Drill = {
  name: 'late',
  about: 'an upstream that hangs, drips, or answers too late in every way there is',
  missing: () => null,
  run,
};

async function run({ stage, say }: Context): Promise<Outcome> {
  const upstream = await SteeredUpstream.start(stage);
  const { url: databaseUrl } = await testDatabase(stage);
  const config = configFor(upstream.url);
  const start = () => sidecarProcess(stage, { upstream: upstream.url, databaseUrl, config });
  const scene = new LateScene(upstream, databaseUrl, await Promise.all([start(), start()]));
  const rows: Row[] = [];
  const faults: string[] = [];
  for (const one of cases) {
    const row = await one.play(scene, `late-${rows.length + 1}`);
    rows.push(row);
    say(`${one.name}: ${row.client}; ${row.record}`);
    for (const field of ['client', 'record', 'retry', 'executions'] as const)
      if (row[field] !== one.expected[field])
        faults.push(`${one.name}: ${field} is "${row[field]}", not "${one.expected[field]}"`);
    if (!one.expected.evidence.test(row.evidence)) faults.push(`${one.name}: evidence is "${row.evidence}"`);
  }
  const answered = rows.filter(({ client, retry }) => /executed|replayed/.test(client + retry)).length;
  return {
    findings: [
      finding('each late answer ends as documented', faults, `${cases.length} cases`),
      notVacuous(answered, rows.length),
    ],
    tables: [
      {
        title: 'late answers',
        head: ['the upstream', 'the client got', 'record', 'a retry gets', 'ran', 'evidence'],
        rows: rows.map((row, i) => [
          cases[i]?.name ?? '',
          row.client,
          row.record,
          row.retry,
          row.executions,
          row.evidence,
        ]),
      },
    ],
    facts: { rows },
  };
}
