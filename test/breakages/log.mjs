/** Breakages of how the log is written; the form is that of test/breakages.mjs. */
export const breakages = [
  {
    rule: 'a log that nobody reads is bounded',
    in: 'LogOutput.write',
    find: 'this.#dropped > 0 || this.#heldBytes >= maxHeldBytes',
    replace: 'this.#dropped > 0',
    test: 'test/e2e/unread-log.test.ts',
  },
  {
    rule: 'a log that nobody reads holds no end up',
    in: 'LogOutput.flush',
    find: 'const timer = setTimeout(end, flushMs);',
    replace: 'const timer = setTimeout(end, 10 * 60_000);',
    test: 'test/e2e/unread-log.test.ts',
  },
  {
    rule: 'a log that nobody reads holds no end up after a worker has ended',
    in: 'LogOutput.#write',
    find: 'if (this.#fd === 1) neverBlock();',
    replace: '',
    test: 'test/e2e/unread-log.test.ts',
  },
  {
    rule: 'an unknown outcome is told at warn',
    in: 'logEvents',
    find: "outcome === 'unknown' ? 'warn' : 'info'",
    replace: "'info'",
    test: 'test/telemetry/logger.test.ts',
  },
];
