import t, { type Test } from 'tap';
import { createMemos } from '../../src/core/memos.ts';
import { Attempts } from '../../src/proxy/attempts.ts';
import { Budget } from '../../src/proxy/budget.ts';
import type { ProxyDeps } from '../../src/proxy/deps.ts';
import type { Exchange } from '../../src/proxy/exchange.ts';
import { forward } from '../../src/proxy/forward.ts';
import { Share } from '../../src/proxy/share.ts';
import { UpstreamClient } from '../../src/upstream/client.ts';
import { RawUpstream, scripts } from '../helpers/raw-upstream.ts';
import { target } from '../upstream/send.ts';

interface When {
  readonly deadlineMs: number;
  readonly mayStart: (instance: string) => boolean;
  /** Bytes that others hold, of 1,000,000. */
  readonly held?: number;
}

/** One forward to an upstream that would answer. */
async function forwarded(t: Test, { deadlineMs, mayStart, held = 0 }: When) {
  const upstream = await RawUpstream.listen(
    scripts.answer('HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok'),
  );
  t.teardown(() => upstream.close());
  const to = target(upstream.origin);
  const client = new UpstreamClient(to);
  t.teardown(() => client.destroy());
  const budget = new Budget(1_000_000);
  budget.take(held, 'others');
  const deps = {
    identity: { keySources: ['idempotency-key'], tenantHeader: null },
    lease: { mayStart },
    clientFor: () => client,
    budget,
    memos: createMemos(),
  } as unknown as ProxyDeps;
  const rawHeaders = ['Host', 'a', 'Idempotency-Key', 'k'];
  const exchange = {
    method: 'POST',
    req: { url: '/a', rawHeaders, headers: { host: 'a' }, socket: { remoteAddress: '127.0.0.1' } },
    policy: { upstream: to, maxStoredBodyBytes: 1_000, forwardKey: { kind: 'keep' } },
    body: Buffer.from('{}'),
    requestId: 'r',
    share: new Share(budget, '127.0.0.1'),
  } as unknown as Exchange;
  const attempt = new Attempts().open('instance', deadlineMs);
  const { captured } = await forward(deps, exchange, { attempt, epoch: '7', key: 'k' });
  return { ending: captured.ending, bytes: upstream.bytes };
}

t.test('sent, while its lease lives and its deadline is ahead', async (t) => {
  const asked: string[] = [];
  const { ending, bytes } = await forwarded(t, {
    deadlineMs: 60_000,
    mayStart: (instance) => asked.push(instance) > 0,
  });
  t.match(ending, { kind: 'answered', status: 201 });
  t.ok(bytes > 0);
  t.same(asked, ['instance'], 'the lease of this attempt, not any');
});

t.test('not a byte is sent once its lease has lapsed', async (t) => {
  const { ending, bytes } = await forwarded(t, { deadlineMs: 60_000, mayStart: () => false });
  t.equal(ending.kind, 'not_started', 'which proves that it did not run');
  t.equal(bytes, 0);
});

t.test('nor past its deadline: by then it may be called unknown, and freed by a person', async (t) => {
  const { ending, bytes } = await forwarded(t, { deadlineMs: 0, mayStart: () => true });
  t.equal(ending.kind, 'not_started');
  t.equal(bytes, 0);
});

t.test('nor while no memory is left for its answer', async (t) => {
  const { ending, bytes } = await forwarded(t, { deadlineMs: 60_000, mayStart: () => true, held: 1_000_001 });
  t.match(ending, { kind: 'not_started', error: { code: 'no_room' } });
  t.equal(bytes, 0);
});
