import { createHash } from 'node:crypto';
import t from 'tap';
import { type Actor, hashOf, idOf, moves, sourcesOf, states, waitingStates } from '../../src/core/record.ts';

const actors: readonly Actor[] = ['attempt', 'sweeper', 'retry', 'reconciler', 'operator'];

t.test('each move is named once, between two different states, by known actors', (t) => {
  const named = moves.map(({ from, to }) => `${from} ${to}`);
  t.equal(new Set(named).size, named.length);
  for (const { from, to, by } of moves) {
    t.ok(states.includes(from) && states.includes(to) && from !== to, `${from} → ${to}`);
    t.ok(by.length > 0 && by.every((actor) => actors.includes(actor)), by.join());
  }
  t.end();
});

t.test('no retry ever leaves unknown or dead_letter', (t) => {
  t.strictSame(sourcesOf('in_progress', 'retry'), ['failed_retryable', 'completed']);
  for (const state of states) {
    if (state !== 'in_progress') t.strictSame(sourcesOf(state, 'retry'), [], state);
  }
  t.end();
});

t.test('nothing but a retry makes a record run', (t) => {
  for (const actor of actors) {
    if (actor !== 'retry') t.strictSame(sourcesOf('in_progress', actor), [], actor);
  }
  t.end();
});

t.test('a late answer is accepted from everywhere but completed', (t) => {
  const late = ['in_progress', 'failed_retryable', 'unknown', 'dead_letter'];
  t.strictSame([...sourcesOf('completed', 'attempt')].sort(), late.sort());
  t.strictSame([...sourcesOf('failed_retryable', 'attempt')].sort(), [
    'dead_letter',
    'in_progress',
    'unknown',
  ]);
  t.strictSame(sourcesOf('unknown', 'attempt'), ['in_progress']);
  t.end();
});

t.test('the sweeper touches only what is in progress, and only the reconciler gives up', (t) => {
  t.strictSame(sourcesOf('unknown', 'sweeper'), ['in_progress']);
  t.strictSame(sourcesOf('failed_retryable', 'sweeper'), ['in_progress'], 'what was never sent');
  for (const state of ['completed', 'dead_letter'] as const)
    t.strictSame(sourcesOf(state, 'sweeper'), [], state);
  t.strictSame(sourcesOf('dead_letter', 'reconciler'), ['unknown']);
  t.strictSame(sourcesOf('dead_letter', 'operator'), []);
  t.end();
});

t.test('a person settles what waits, purges what is completed, and never touches what runs', (t) => {
  t.strictSame(sourcesOf('completed', 'operator'), waitingStates);
  t.strictSame([...sourcesOf('failed_retryable', 'operator')].sort(), ['completed', ...waitingStates].sort());
  for (const state of ['in_progress', 'unknown', 'dead_letter'] as const)
    t.strictSame(sourcesOf(state, 'operator'), [], state);
  t.end();
});

t.test('every state can be reached and left', (t) => {
  for (const state of states) {
    t.ok(
      moves.some((move) => move.to === state),
      `→ ${state}`,
    );
    t.ok(
      moves.some((move) => move.from === state),
      `${state} →`,
    );
  }
  t.end();
});

t.test('ids: one string for each scope and key', (t) => {
  const scope = Buffer.alloc(32, 0xe9);
  const ids = [
    { scope, key: 'a' },
    { scope, key: 'b' },
    { scope: Buffer.alloc(32, 0xe8), key: 'a' },
  ];
  t.equal(new Set(ids.map(idOf)).size, 3);
  t.equal(idOf({ scope, key: 'a' }), idOf({ scope: Buffer.from(scope), key: 'a' }));
  t.end();
});

t.test('hashes: one for each record, over the bytes of both', (t) => {
  const scope = Buffer.alloc(32, 0xe9);
  const bytes = Buffer.concat([scope, Buffer.from('a "b"')]);
  t.equal(hashOf({ scope, key: 'a "b"' }), createHash('sha256').update(bytes).digest('hex'));
  t.not(hashOf({ scope, key: 'a' }), hashOf({ scope: Buffer.alloc(32, 0xe8), key: 'a' }));
  t.end();
});
