import { randomUUID } from 'node:crypto';
import t from 'tap';
import { send } from '../helpers/client.ts';
import { recordOf } from '../helpers/records.ts';
import { sidecar } from '../helpers/sidecar.ts';
import { type Steering, testUpstream } from '../helpers/upstream.ts';

/** The outcome table: what the upstream's status does to the key. The client gets the upstream's answer in every case. */

type Outcome = 'store' | 'release' | 'unknown';

const retryAfter = { 'Retry-After': '7' };
const says = (word: string) => ({ 'Oncegate-Outcome': word });

type Row = [path: string, steer: Steering, outcome: Outcome];

const rows: readonly Row[] = [
  ['/standard', { status: 200 }, 'store'],
  ['/standard', { status: 204 }, 'store'],
  ['/standard', { status: 302 }, 'store'],
  ['/standard', { status: 400 }, 'store'],
  ['/standard', { status: 404 }, 'store'],
  ['/standard', { status: 409 }, 'store'],
  ['/standard', { status: 422 }, 'store'],
  ...[401, 403, 407, 408, 421, 425, 429, 431, 500, 501, 505].map(
    (status): Row => ['/standard', { status }, 'release'],
  ),
  ['/standard', { status: 503, headers: retryAfter }, 'release'],
  ['/standard', { status: 503 }, 'unknown'],
  ['/standard', { status: 502 }, 'unknown'],
  ['/standard', { status: 504 }, 'unknown'],
  ['/stripe', { status: 403 }, 'store'],
  ['/stripe', { status: 401 }, 'release'],
  ['/stripe', { status: 429 }, 'release'],
  ['/stripe', { status: 500 }, 'store'],
  ['/stripe', { status: 502 }, 'store'],
  ['/stripe', { status: 503, headers: retryAfter }, 'store'],
  ['/payments', { status: 201 }, 'store'],
  ['/payments', { status: 402 }, 'store'],
  ['/payments', { status: 429 }, 'release'],
  ['/payments', { status: 500 }, 'unknown'],
  ['/payments', { status: 503, headers: retryAfter }, 'unknown'],
  ['/payments', { status: 504 }, 'unknown'],
  ['/override', { status: 409 }, 'release'],
  ['/override', { status: 500 }, 'store'],
  ['/override', { status: 200 }, 'unknown'],
  ['/override', { status: 502 }, 'unknown'],
  ['/standard', { status: 201, headers: says('not-executed') }, 'release'],
  ['/standard', { status: 201, headers: says('unknown') }, 'unknown'],
  ['/standard', { status: 500, headers: says('executed') }, 'store'],
  ['/payments', { status: 500, headers: says('Not-Executed ') }, 'release'],
  ['/override', { status: 200, headers: says('executed') }, 'store'],
  ['/standard', { status: 500, headers: says('whatever') }, 'release'],
];

const kept: Record<Outcome, { state: string; first: string; retry: string; runs: number }> = {
  store: { state: 'completed', first: 'executed', retry: 'replayed', runs: 1 },
  release: { state: 'failed_retryable', first: 'released', retry: 'executed', runs: 2 },
  unknown: { state: 'unknown', first: 'unknown', retry: 'unknown', runs: 1 },
};

t.test('every status by every preset, overrides, and the word of the upstream', async (t) => {
  const upstream = await testUpstream(t);
  const { dataUrl, databaseUrl } = await sidecar(t, {
    upstream: upstream.url,
    config: `
routes:
  - { path: /stripe, outcomes: stripe }
  - { path: /payments, outcomes: payments }
  - { path: /override, outcomes: { preset: payments, 409: release, 500: store, 200: unknown } }`,
  });
  for (const [path, steer, outcome] of rows) {
    const what = `${path} ${JSON.stringify(steer)}`;
    const key = randomUUID();
    const { state, first, retry, runs } = kept[outcome];
    const answer = await send(dataUrl + path, key, { steer });
    t.equal(answer.status, steer.status, `${what}: the client gets it`);
    if (steer.status !== 204) t.match(answer.body.toString(), /"ran":/);
    t.equal(answer.headers['idempotency-status'], first, `${what}: ${outcome}`);
    t.equal(answer.headers['retry-after'], steer.headers?.['Retry-After']);
    t.equal(answer.headers['oncegate-outcome'], undefined, 'between the upstream and us');
    t.equal(answer.headers['idempotency-expires'] !== undefined, outcome === 'store');
    t.match(await recordOf(databaseUrl, key), { state, status: steer.status });
    const again = await send(dataUrl + path, key, { steer: { status: 201, headers: says('executed') } });
    t.equal(again.headers['idempotency-status'], retry, `${what}: the retry`);
    t.equal(upstream.countOf(key), runs);
    if (outcome !== 'store') continue;
    t.equal(again.status, steer.status);
    t.same(again.body, answer.body);
    t.equal(again.headers['oncegate-outcome'], undefined);
  }
});
