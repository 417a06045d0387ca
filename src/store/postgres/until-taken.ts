import type { StatementError } from './statement-error.ts';

/** Milliseconds between tries. */
const firstPauseMs = 50;
const longestPauseMs = 2_000;
/** Milliseconds in all: past most failovers. A store that is away for longer is known to people anyway. */
const longestMs = 300_000;

/**
 * A write that may be repeated and that nobody waits for: again and again while nobody knows whether the server has it. Rejects with the
 * last failure once the server has refused it, the store is being closed, or it took too long.
 */
export async function untilTaken<T>(write: () => Promise<T>, isClosing: () => boolean): Promise<T> {
  const sinceMs = performance.now();
  for (let tries = 0; ; tries += 1) {
    try {
      return await write();
    } catch (error) {
      const isLate = performance.now() - sinceMs >= longestMs;
      if ((error as StatementError).failure === 'definite' || isLate || isClosing()) throw error;
    }
    const pauseMs = Math.min(firstPauseMs * 2 ** tries, longestPauseMs);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
