import t from 'tap';
import { duration } from '../../src/config/duration.ts';
import { size } from '../../src/config/size.ts';

t.test('durations in milliseconds', async (t) => {
  const rows: [text: string, ms: number][] = [
    ['0s', 0],
    ['250ms', 250],
    ['30s', 30_000],
    ['5m', 300_000],
    ['24h', 86_400_000],
    ['7d', 604_800_000],
  ];
  for (const [text, ms] of rows) {
    t.match(text, duration.pattern);
    t.equal(duration.parse(text), ms, text);
  }
  for (const [ms, text] of [
    [0, '0ms'],
    [1_500, '1500ms'],
    [90_000, '90s'],
    [3_600_000, '1h'],
    [604_800_000, '7d'],
  ] as const) {
    t.equal(duration.format(ms), text);
  }
});

t.test('sizes in bytes', async (t) => {
  t.equal(size.parse('100b'), 100);
  t.equal(size.parse('512kb'), 524_288);
  t.equal(size.parse('1mb'), 1_048_576);
  t.equal(size.parse('2gb'), 2_147_483_648);
  t.equal(size.format(1_048_576), '1mb');
  t.equal(size.format(1_000), '1000b');
});

t.test('what is not quite one is told what to write', async (t) => {
  const rows: [input: unknown, ms: string, bytes: string][] = [
    [30, 'has no unit; write 30s', 'has no unit; write 30b'],
    ['30', 'has no unit; write 30s', 'has no unit; write 30b'],
    [5000, 'has no unit; write 5000ms', 'has no unit; write 5000b'],
    [-1, 'is not a duration; write a whole', 'is not a size; write a whole'],
    [1.5, 'is not a duration; write a whole', 'is not a size; write a whole'],
    ['30 s', 'write 30s', 'is not a size; write a whole'],
    ['30S', 'write 30s', 'is not a size; write a whole'],
    ['1.5h', 'write 90m', 'is not a size; write a whole'],
    ['1h30m', 'write 90m', 'is not a size; write a whole'],
    ['2 minutes', 'write 2m', 'is not a size; write a whole'],
    ['1MB', 'is not a duration; write a whole', 'write 1mb'],
    ['1.5MiB', 'is not a duration; write a whole', 'write 1536kb'],
    ['soon', 'for instance 30s', 'for instance 1mb'],
    ['-5s', 'for instance 30s', 'for instance 1mb'],
    [null, 'is empty; write', 'is empty; write'],
    [[], 'for instance 30s', 'for instance 1mb'],
  ];
  for (const [input, ms, bytes] of rows) {
    t.ok(duration.fault(input).includes(ms), `${JSON.stringify(input)}: ${duration.fault(input)}`);
    t.ok(size.fault(input).includes(bytes), `${JSON.stringify(input)}: ${size.fault(input)}`);
  }
});
