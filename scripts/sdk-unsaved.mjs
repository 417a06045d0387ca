/**
 * `answer_unsaved`: the store goes away after the upstream has the request. All SDKs at once, for the store is one and a client is told
 * after ten seconds.
 */
import { randomUUID } from 'node:crypto';
import { faultOf, textOf } from './sdk-problem.mjs';

const { until } = await import(new URL('../test/helpers/until.ts', import.meta.url).href);

const text = textOf('answer_unsaved');
/** Of a retry that comes while the store is still away. */
const away = textOf('store_unavailable');

/** `sdks`: those that are driven, with their clients. Gives each one's fault, or null. */
export async function answersUnsaved({ fading, upstream, ran }, sdks) {
  const calls = sdks.flatMap(({ sdk, client }) =>
    [0, 1].map((retries) => {
      const key = `hold-${randomUUID()}`;
      const ask = (more) => client({ url: fading.dataUrl, key, note: key, ...more });
      return { sdk, retries, key, ask, end: ask({ retries }) };
    }),
  );
  await until('all of them run', () => calls.every(({ key }) => ran(key) === 1));
  fading.away();
  for (const { key } of calls) upstream.letGo(key);
  const ends = await Promise.all(calls.map(({ end }) => end));
  fading.back();
  const faults = await Promise.all(
    calls.map(async ({ sdk, retries, key, ask }, i) => {
      const fault = faultOf(ends[i], sdk, retries > 0 ? [text, away] : [text]);
      // What the text promises: the same key gives the answer, and does not run again.
      await until(`${sdk.name} has its answer`, async () => !(await ask()).threw);
      return fault ?? (ran(key) === 1 ? null : `ran ${ran(key)} times`);
    }),
  );
  return sdks.map((_, i) => faults[2 * i] ?? faults[2 * i + 1]);
}
