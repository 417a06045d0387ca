import t from 'tap';
import { canonicalJson } from '../../src/core/canonical-json.ts';

t.test('linear on hostile bodies', (t) => {
  const size = 1 << 20;
  const bodies = ['[', '{"a":', '{"a":[', ' ', '"', '\\', '"\\u0061",', '[[],', '{"a":1,', '1'].map((unit) =>
    unit.repeat(size / unit.length),
  );
  bodies.push(`["${'\\"'.repeat(size / 2)}"]`, `[${'0,'.repeat(size / 2)}0]`, `{"${'a'.repeat(size)}":1}`);
  bodies.push(`{${Array.from({ length: 40_000 }, (_, i) => `"prefix-prefix-${40_000 - i}":1`).join()}}`);
  for (const body of bodies) {
    const started = process.hrtime.bigint();
    canonicalJson(Buffer.from(body), []);
    const ms = Number((process.hrtime.bigint() - started) / 1_000_000n);
    // Each takes under 200 ms here; anything quadratic takes minutes.
    t.ok(ms < 5000, `${body.slice(0, 12)}… ${body.length} bytes`);
  }
  t.end();
});
