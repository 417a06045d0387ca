import { measure } from './measure.ts';

/** `250ms`, `30s`, `24h`, `7d`, `0s`; in milliseconds. */
export const duration = measure({
  name: 'duration',
  example: '30s',
  tooLittle: 'too short',
  tooMuch: 'too long',
  units: { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 },
  aliases: {
    msec: 'ms',
    millis: 'ms',
    milliseconds: 'ms',
    sec: 's',
    secs: 's',
    second: 's',
    seconds: 's',
    min: 'm',
    mins: 'm',
    minute: 'm',
    minutes: 'm',
    hr: 'h',
    hour: 'h',
    hours: 'h',
    day: 'd',
    days: 'd',
  },
  // People who write 30 mean seconds, people who write 30000 mean milliseconds.
  likelyUnit: (bare) => (bare >= 1_000 ? 'ms' : 's'),
});
