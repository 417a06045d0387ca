import t from 'tap';
import { changeJson, recordJson } from '../../src/operator/json-view.ts';
import { list } from '../../src/operator/list.ts';
import { shortId } from '../../src/operator/short-id.ts';
import { view } from '../../src/operator/view.ts';
import { by, completed, doubtful } from '../store/operator-harness.ts';
import { answer, reserved, retentionMs } from '../store/samples.ts';
import { type Room, room, settings } from './room.ts';

let here: Room;
t.before(async () => {
  here = await room(t);
});
t.beforeEach(() => here.harness.clear());

const deps = () => ({ store: here.store, settings: settings() });
const anyOf = { olderThanMs: 0, tenant: null, path: null, limit: 10 };

t.test('list: what waits, unless a state is named; says when it may be less than there is', async (t) => {
  const older = await doubtful(here.sidecar, { tenant: 'acme' });
  const newer = await doubtful(here.sidecar);
  const running = await reserved(here.sidecar);
  const settled = await completed(here.sidecar);
  const waiting = await list(deps(), { ...anyOf, state: null });
  t.match(waiting, { states: ['unknown', 'dead_letter'], isCut: false, searchedSettled: null });
  t.strictSame(
    waiting.records.map(({ key }) => key),
    [older.key, newer.key],
  );
  t.match(await list(deps(), { ...anyOf, state: null, tenant: 'acme', limit: 1 }), {
    records: [{ key: older.key }],
    isCut: true,
  });
  t.match(await list(deps(), { ...anyOf, state: 'in_progress' }), {
    records: [{ key: running.key }],
    searchedSettled: null,
  });
  t.match(await list(deps(), { ...anyOf, state: 'completed' }), {
    records: [{ key: settled.key }],
    searchedSettled: 1_000,
  });
  t.match(await list(deps(), { ...anyOf, state: 'failed_retryable' }), {
    records: [],
    searchedSettled: 1_000,
  });
});

t.test('view: a stored answer only when it is asked for', async (t) => {
  const record = await here.seen(await completed(here.sidecar));
  t.match(await view(deps(), record, { withAnswer: false }), {
    record,
    answer: { kind: 'not_asked' },
    history: { audit: [], lateAnswers: [] },
    next: [{ kind: 'purge' }],
  });
  t.match(await view(deps(), record, { withAnswer: true }), { answer: { kind: 'kept', answer: answer() } });
  const waiting = await here.seen(await doubtful(here.sidecar));
  t.match(await view(deps(), waiting, { withAnswer: true }), { answer: { kind: 'none' } });
});

t.test('as JSON: an ID beside the key, times that people read, never the answer', async (t) => {
  const record = await here.seen(await completed(here.sidecar));
  const shown = recordJson(record);
  t.match(JSON.parse(JSON.stringify(shown)), {
    id: shortId(record),
    scope: record.scope.toString('hex'),
    key: record.key,
    epoch: record.epoch,
    reservedAt: /^\d{4}-.*Z$/,
    blockedUntil: null,
  });
  t.strictSame(
    Object.keys(shown).filter((name) => ['body', 'headers', 'fingerprint', 'answer'].includes(name)),
    [],
  );
});

t.test('a change as JSON: what it came to, and the record as it is then', async (t) => {
  const record = await here.seen(await doubtful(here.sidecar));
  const id = shortId(record);
  const done = await here.store.releaseIfUnchanged(record, by, retentionMs);
  t.match(changeJson(record, done), { result: 'done', id, now: { id, state: 'failed_retryable' } });
  const refused = await here.store.releaseIfUnchanged(record, by, retentionMs);
  t.match(changeJson(record, refused), { result: 'refused', id, now: { state: 'failed_retryable' } });
  t.strictSame(changeJson(record, { kind: 'unconfirmed', cause: new Error('cut') }), {
    result: 'unconfirmed',
    id,
    now: null,
    error: 'cut',
  });
});
