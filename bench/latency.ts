import type pg from 'pg';
import { type Bench, type Entrant, send } from './measure.ts';
import { spreadOf } from './spread.ts';

/** Medians of one round, ms. */
export interface LatencyRound {
  readonly direct: number;
  readonly first: number;
  /** One commit of the same PostgreSQL, asked for by the same driver. */
  readonly commit: number;
}

const rounds = 5;
const requests = 100;

/** At one connection nothing is shared with anybody: what is left is the way, and the commits. */
export async function measureLatency(bench: Bench, direct: Entrant, first: Entrant): Promise<LatencyRound[]> {
  const oneByOne = async ({ port, traffic }: Entrant): Promise<number> => {
    const { p50Ms } = await send(bench, { port, traffic, connections: 1, requests });
    return p50Ms;
  };
  const { client } = bench;
  await client.query('CREATE TABLE one_row AS SELECT 0 AS n');
  await timeCommits(client);
  const results: LatencyRound[] = [];
  for (let round = 0; round < rounds; round += 1) {
    results.push({
      direct: await oneByOne(direct),
      first: await oneByOne(first),
      commit: await timeCommits(client),
    });
  }
  return results;
}

async function timeCommits(client: pg.Client): Promise<number> {
  const took: number[] = [];
  for (let index = 0; index < requests; index += 1) {
    const startedMs = performance.now();
    await client.query({ name: 'commit', text: 'UPDATE one_row SET n = n + 1' });
    took.push(performance.now() - startedMs);
  }
  return spreadOf(took).median;
}
