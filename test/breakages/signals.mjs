/** Breakages of what a signal does to a process that serves; the form is that of test/breakages.mjs. */
export const breakages = [
  {
    rule: 'SIGHUP does not end what runs',
    in: 'untilSignal',
    find: ".on('SIGHUP', heard.onHangup);\n  if",
    replace: ';\n  if',
    test: 'test/e2e/hangup.test.ts',
  },
  {
    rule: 'a SIGHUP to all workers is told once',
    in: 'untilSignal',
    find: 'onHangup: ignore }',
    replace: 'onHangup }',
    test: 'test/e2e/hangup.test.ts',
  },
  {
    rule: 'a worker is stopped by the first process alone',
    in: 'untilSignal',
    find: 'onSignal: ignore, onHangup: ignore',
    replace: 'onSignal, onHangup: ignore',
    test: 'test/e2e/workers.test.ts',
  },
];
