import t from 'tap';
import { readDecision } from '../../src/operator/decision.ts';
import { carryOut, type Plan, type Planned } from '../../src/operator/plan.ts';
import { planResolve, type Resolution } from '../../src/operator/resolve.ts';
import { readRetention } from '../../src/operator/retention.ts';
import { by, completed, doubtful, given } from '../store/operator-harness.ts';
import { answer, recordAt, reservation, reserved } from '../store/samples.ts';
import { maxStoredBodyBytes, type Room, room, routeRetentionMs, settings } from './room.ts';

let here: Room;
t.before(async () => {
  here = await room(t);
});

const complete: Resolution = { kind: 'complete', answer: given.answer };
const release: Resolution = { kind: 'release' };
const ofRoute = { kind: 'of_route' } as const;
const usual = { retention: ofRoute, epoch: null };

function allowed(planned: Planned): Plan {
  if (planned.kind === 'may') return planned.plan;
  throw new Error(planned.why.kind);
}

t.test('it ran: the record completes with the answer, for as long as its route says', async (t) => {
  const { sidecar, store, seen } = here;
  const wanted = await doubtful(sidecar);
  const record = await seen(wanted);
  const plan = allowed(planResolve(settings(), record, { resolution: complete, ...usual }));
  t.match(plan, { kind: 'complete', retentionMs: routeRetentionMs });
  t.equal((await seen(wanted)).state, 'unknown', 'a plan changes nothing');
  const result = await carryOut({ store }, plan, by);
  t.match(result, { kind: 'done', record: { state: 'completed', status: 200 } });
  t.strictSame((await recordAt(sidecar, wanted)).answer, given.answer);
  const { completedAtMs, retainUntilMs } = await seen(wanted);
  t.equal(Math.round((retainUntilMs ?? 0) - (completedAtMs ?? 0)), routeRetentionMs);
  t.match((await store.history(wanted)).audit, [{ ...by, action: 'complete', epoch: record.epoch }]);
});

t.test('it did not run: the key is free, and the plan works once', async (t) => {
  const { harness, sidecar, store, seen } = here;
  const wanted = await doubtful(sidecar);
  await harness.forceState(wanted, 'dead_letter');
  const retention = { kind: 'given', retentionMs: 5_000 } as const;
  const plan = allowed(
    planResolve(settings(), await seen(wanted), { resolution: release, retention, epoch: null }),
  );
  t.match(plan, { kind: 'release', retentionMs: 5_000 });
  t.match(await carryOut({ store }, plan, by), { kind: 'done', record: { state: 'failed_retryable' } });
  t.match(await carryOut({ store }, plan, by), { kind: 'refused', record: { state: 'failed_retryable' } });
  t.equal((await store.history(wanted)).audit.length, 1);
});

t.test('what ran again since the person saw it is not touched, before the plan or after', async (t) => {
  const { sidecar, store, seen } = here;
  const wanted = await doubtful(sidecar);
  const { epoch, ...before } = await seen(wanted);
  const early = allowed(
    planResolve(settings(), { epoch, ...before }, { resolution: release, ...usual, epoch }),
  );
  t.equal((await carryOut({ store }, early, by)).kind, 'done');
  const next = reservation({ scope: wanted.scope, key: wanted.key });
  t.equal((await sidecar.takeOverIfUnchanged(await recordAt(sidecar, wanted), next)).kind, 'reserved');
  const { scope, key, attempt } = next;
  await sidecar.markUnknownIfHeld({ scope, key, attempt, status: null, error: 'cut' });
  for (const resolution of [release, complete])
    t.strictSame(planResolve(settings(), await seen(wanted), { resolution, ...usual, epoch }), {
      kind: 'may_not',
      why: { kind: 'another_epoch', epoch },
    });
  t.match(await carryOut({ store }, early, by), { kind: 'refused', record: { state: 'unknown', attempt } });
  t.equal((await recordAt(sidecar, wanted)).state, 'unknown');
});

t.test('what does not wait is not resolved: the refusal says what may be done instead', async (t) => {
  const { sidecar, seen } = here;
  const rows = [
    [await reserved(sidecar), 'wait'],
    [await completed(sidecar), 'purge'],
  ] as const;
  for (const [wanted, step] of rows)
    for (const resolution of [complete, release])
      t.match(planResolve(settings(), await seen(wanted), { resolution, ...usual }), {
        kind: 'may_not',
        why: { kind: 'not_waiting', next: [{ kind: step }] },
      });
});

t.test('a body is as large as the route stores, not larger', async (t) => {
  const record = await here.seen(await doubtful(here.sidecar, { method: 'PATCH', path: '/refunds' }));
  const asked: string[] = [];
  const watched = settings({
    policyFor(method, path) {
      asked.push(`${method} ${path}`);
      return settings().policyFor(method, path);
    },
  });
  const planOf = (bytes: number | null) =>
    planResolve(watched, record, {
      resolution: {
        kind: 'complete',
        answer: answer({ body: bytes === null ? null : Buffer.alloc(bytes) }),
      },
      ...usual,
    });
  for (const bytes of [null, 0, maxStoredBodyBytes]) t.equal(planOf(bytes).kind, 'may');
  t.strictSame(planOf(maxStoredBodyBytes + 1), {
    kind: 'may_not',
    why: { kind: 'body_too_large', limitBytes: maxStoredBodyBytes },
  });
  t.strictSame([...new Set(asked)], ['PATCH /refunds']);
});

t.test('retention: given, the route’s, or missing', async (t) => {
  const unknown = settings({ knowsRoutes: false });
  const given = (retentionMs: number) => ({ kind: 'retention', retention: { kind: 'given', retentionMs } });
  for (const kind of ['complete', 'release'] as const) {
    for (const known of [settings(), unknown]) {
      t.strictSame(readRetention(known, kind, 999), { kind: 'too_short', leastMs: 1_000 });
      t.strictSame(readRetention(known, kind, 1_000), given(1_000));
    }
    t.strictSame(readRetention(settings(), kind, null), { kind: 'retention', retention: ofRoute });
  }
  t.strictSame(readRetention(unknown, 'complete', null), { kind: 'missing' });
  t.strictSame(readRetention(unknown, 'release', null), { kind: 'retention', retention: ofRoute });
});

t.test('a decision has a reason', async (t) => {
  t.strictSame(readDecision({ actor: 'ann', reason: ' asked the bank\n' }), {
    kind: 'decision',
    by: { actor: 'ann', reason: 'asked the bank' },
  });
  for (const reason of ['', ' \n\t'])
    t.strictSame(readDecision({ actor: 'ann', reason }), { kind: 'no_reason' });
});
