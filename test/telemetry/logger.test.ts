import t from 'tap';
import { leaseOpened, recordSwept, requestDone } from '../../src/events.ts';
import { createLogger, logEvents } from '../../src/telemetry/logger.ts';

const done = {
  requestId: 'req-1',
  method: 'POST',
  route: '/a "quoted" path/*',
  status: 201,
  verdict: 'execute',
  outcome: 'store',
  id: { scope: Buffer.alloc(32, 1), key: 'k' },
  instance: null,
  error: null,
  totalMs: 12.3456,
  reserveMs: 1.005,
  forwardMs: 7.5,
  completeMs: 0,
} as const;

const cases = {
  'a first request': done,
  'one that was replayed': {
    ...done,
    verdict: 'replay',
    outcome: null,
    forwardMs: null,
    completeMs: null,
  },
  'one that was refused before it had a key': {
    ...done,
    verdict: 'key_missing',
    outcome: null,
    id: null,
    reserveMs: null,
  },
} as const;

for (const [name, fact] of Object.entries(cases)) {
  t.test(`the line that is spelled by hand reads as the one of pino: ${name}`, async (t) => {
    const lines: string[] = [];
    const log = createLogger('info', { write: (line: string) => void lines.push(line) });
    t.teardown(logEvents(log, () => 'default'));
    leaseOpened.publish({ instance: 'instance-1' });
    lines.length = 0;
    requestDone.publish(fact);
    requestDone.publish({ ...fact, error: new Error('broken') });
    const [byHand, byPino] = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    t.equal(lines.length, 2);
    t.ok(lines.every((line) => line.endsWith('}\n')));
    const { level, error, time, ...rest } = byPino as Record<string, unknown>;
    t.same([level, error], [40, 'broken']);
    t.match(time, /^\d{4}-\d\d-\d\dT/);
    t.strictSame({ ...byHand, time: '' }, { level: 30, ...rest, time: '' });
    t.same(
      Object.keys(byHand ?? {}),
      Object.keys(byPino ?? {}).filter((name) => name !== 'error'),
    );
  });
}

t.test('nothing is written below its level', async (t) => {
  const lines: string[] = [];
  t.teardown(
    logEvents(createLogger('warn', { write: (line: string) => void lines.push(line) }), () => 'default'),
  );
  requestDone.publish(done);
  t.same(lines, []);
});

t.test('what is unknown is told at warn, with its route and its instance', async (t) => {
  const lines: string[] = [];
  const log = createLogger('warn', { write: (line: string) => void lines.push(line) });
  t.teardown(logEvents(log, (method, path) => `${method} ${path} by its route`));
  leaseOpened.publish({ instance: 'instance-1' });
  requestDone.publish({ ...done, outcome: 'unknown', status: 504, route: '/charges' });
  recordSwept.publish({
    ...done.id,
    attempt: 'attempt-2',
    instance: 'instance-2',
    method: 'POST',
    path: '/charges',
    requestId: 'req-2',
    reason: 'lease_over',
    to: 'unknown',
  });
  t.match(
    lines.map((line) => JSON.parse(line) as object),
    [
      { level: 40, instance: 'instance-1', route: '/charges', outcome: 'unknown', msg: 'request' },
      { level: 40, instance: 'instance-2', route: 'POST /charges by its route', reason: 'lease_over' },
    ],
  );
});

t.test('a request that outlived the lease of its process names the instance of its record', async (t) => {
  const lines: string[] = [];
  const log = createLogger('info', { write: (line: string) => void lines.push(line) });
  t.teardown(logEvents(log, () => 'default'));
  leaseOpened.publish({ instance: 'instance-2' });
  lines.length = 0;
  requestDone.publish({ ...done, instance: 'instance-1' });
  requestDone.publish({ ...done, instance: 'instance-1', error: new Error('broken') });
  t.match(
    lines.map((line) => JSON.parse(line) as object),
    [{ instance: 'instance-1' }, { instance: 'instance-1' }],
  );
});
