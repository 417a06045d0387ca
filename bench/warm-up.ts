import { type Bench, type Entrant, send } from './measure.ts';

interface Patience {
  readonly requests: number;
  readonly connections: number;
  /** Whatever was sent by then must do. */
  readonly seconds: number;
}

/** So often there is a look at the clock. */
const slices = 50;

/** Seconds between two lines about one warm-up. */
const sayEvery = 5;

/** Until V8 has compiled what runs often, and every connection that is kept is open. */
export async function warmUp(
  bench: Bench,
  { port, traffic }: Pick<Entrant, 'port' | 'traffic'>,
  { requests, connections, seconds }: Patience,
  say: (line: string) => void,
): Promise<void> {
  const order = { port, connections, traffic, requests: Math.ceil(requests / slices) };
  const startedMs = performance.now();
  const elapsed = (): number => (performance.now() - startedMs) / 1000;
  // The first of each key runs; only then are there replays.
  if ('keys' in traffic) await send(bench, { ...order, prime: true });
  let saidAt = 0;
  for (let slice = 1; slice <= slices && elapsed() < seconds; slice += 1) {
    await send(bench, order);
    if (elapsed() - saidAt < sayEvery) continue;
    saidAt = elapsed();
    say(`  ${Math.round((100 * slice) / slices)} % of ${requests} requests`);
  }
}
