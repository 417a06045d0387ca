/** The clients, in a process of their own. */
import { Lane } from './lane.ts';
import { connectionsInStep, priming, type Step, stepAt, type Traffic } from './traffic.ts';

export interface Order {
  readonly port: number;
  /** At least; a step of several connections is always whole. */
  readonly requests: number;
  readonly connections: number;
  readonly traffic: Traffic;
  /** Send each key of the traffic once, for it to be replayed later. */
  readonly prime?: boolean;
}

export interface Done {
  readonly steps: number;
  readonly requests: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Without an answer for so long a contender counts as broken. */
const silenceMs = 20_000;

/** Replays go on where the last order ended: keys come in turn, over all orders. */
let replaysSent = 0;

async function run({ port, requests, connections, traffic, prime = false }: Order): Promise<Done> {
  const size = connectionsInStep(traffic);
  const steps = prime && 'keys' in traffic ? traffic.keys.length : Math.ceil(requests / size);
  const latencies = new Float64Array(steps * size);
  let sent = 0;
  let answered = 0;
  let end: (error: Error | null) => void = () => {};
  const ended = new Promise<Error | null>((resolve) => {
    end = resolve;
  });
  const lead = {
    nextStep(): Step | null {
      if (sent === steps) return null;
      const index = sent++;
      if (traffic.kind === 'replays' && !prime) return stepAt(traffic, replaysSent++);
      return prime && 'keys' in traffic ? priming(traffic.keys, index) : stepAt(traffic, index);
    },
    answered(ms: number): void {
      latencies[answered++] = ms;
      if (answered === latencies.length) end(null);
    },
    failed: (error: Error) => end(error),
  };
  const lanes = Array.from(
    { length: Math.max(1, Math.min(Math.floor(connections / size), steps)) },
    () => new Lane(lead, size),
  );
  await Promise.all(lanes.map((lane) => lane.open(port)));
  const startedMs = performance.now();
  for (const lane of lanes) lane.go();
  let before = -1;
  const watch = setInterval(() => {
    if (before === answered) end(new Error(`no answer for ${silenceMs / 1000} s`));
    before = answered;
  }, silenceMs);
  const error = await ended;
  const seconds = (performance.now() - startedMs) / 1000;
  clearInterval(watch);
  for (const lane of lanes) lane.close();
  if (error !== null) throw error;
  latencies.sort();
  const at = (share: number): number => latencies[Math.floor(share * (latencies.length - 1))] as number;
  return { steps, requests: latencies.length, seconds, p50Ms: at(0.5), p99Ms: at(0.99) };
}

process.on('message', async (order: Order) => {
  try {
    process.send?.({ done: await run(order) });
  } catch (error) {
    process.send?.({ failed: (error as Error).message });
  }
});
process.on('disconnect', () => process.exit());
