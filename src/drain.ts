import { asError } from './errors.ts';
import type { Instance } from './instance.ts';

/** An instance, and the port through which its clients come. */
interface DrainParts {
  readonly instance: Instance;
  readonly data: {
    /** Takes no more connections, and waits for those that there are. May be called twice. */
    close(): Promise<unknown>;
    /** Ends every connection now. */
    cut(): void;
  };
  /** The store did not take the end of our lease: peers see it only when it runs out. */
  readonly onLeaseNotClosed: (error: Error) => void;
}

/** Milliseconds at the end of a drain for the store to take what is still unsettled. */
const lastSettleMs = 5_000;
/** Milliseconds after that for all else that the store is told; then it is cut. docs/deploy.md and the chart count on the sum. */
const lastWordsMs = 5_000;

/** Ends an instance in order: clients, upstreams, loops, lease, store. */
export async function drain(parts: DrainParts, maxMs: number): Promise<{ readonly abandoned: number }> {
  const abandoned = await finish(parts, maxMs);
  await takeApart(parts);
  return { abandoned };
}

/**
 * Stops accepting; what runs is answered; past `maxMs` it is cut, and its record settled as unknown. Gives back how many attempts
 * the store has not settled even then: those are left to the sweeper of another instance.
 */
async function finish({ instance, data }: DrainParts, maxMs: number): Promise<number> {
  const { attempts } = instance.deps;
  let abandoned = 0;
  // In this order: a request that is still being read has no attempt yet, and its client may leave.
  const answered = data.close().then(() => attempts.idle());
  const timer = setTimeout(() => {
    void instance.clients.destroy();
    data.cut();
  }, maxMs);
  const atLast = setTimeout(() => {
    abandoned = attempts.size;
    attempts.abandon();
  }, maxMs + lastSettleMs);
  await answered;
  clearTimeout(timer);
  clearTimeout(atLast);
  return abandoned;
}

/** Also for an instance whose start failed. The store is closed last, and never waited for longer than `lastWordsMs`. */
export async function takeApart({ instance, data, onLeaseNotClosed }: DrainParts): Promise<void> {
  const { store, lease } = instance.deps;
  await data.close();
  // What is under way or still to be sent then fails at once, however the store hangs.
  const cutAtMs = performance.now() + lastWordsMs;
  const isCut = new AbortController();
  const cutStore = setTimeout(() => {
    isCut.abort();
    void store.close(0);
  }, lastWordsMs);
  await instance.stopLoops();
  await instance.clients.destroy();
  // While our lease lives: once it is over, others would call unknown what only we know was never sent.
  await instance.releaseUnsent(isCut.signal).catch(() => {});
  await lease.close().catch((error) => onLeaseNotClosed(asError(error)));
  clearTimeout(cutStore);
  await store.close(Math.max(0, cutAtMs - performance.now()));
}
