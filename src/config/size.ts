import { measure } from './measure.ts';

/** `100b`, `512kb`, `1mb`; in bytes, each unit 1024 of the one before. */
export const size = measure({
  name: 'size',
  example: '1mb',
  tooLittle: 'too small',
  tooMuch: 'too large',
  units: { b: 1, kb: 1024, mb: 1024 ** 2, gb: 1024 ** 3 },
  aliases: {
    byte: 'b',
    bytes: 'b',
    k: 'kb',
    kib: 'kb',
    ki: 'kb',
    m: 'mb',
    mib: 'mb',
    mi: 'mb',
    g: 'gb',
    gib: 'gb',
    gi: 'gb',
  },
  likelyUnit: () => 'b',
});
