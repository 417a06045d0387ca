import { compilePolicies } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import type { Running } from '../main.ts';
import { type Args, settingsOf } from './args.ts';
import type { Command } from './commands.ts';
import { startDemoUpstream } from './demo-upstream.ts';
import { requireStore } from './require-store.ts';
import type { Io } from './run.ts';
import { serveUntilSignal } from './serve.ts';

/** Everything on this machine: an embedded store, a payments service that charges each time it is asked, and us. */
export async function demoCommand(command: Command, args: Args, io: Io): Promise<number> {
  const embedded = { from: 'demo', path: ['store', 'embedded'], value: true };
  const loopback = [
    { from: 'demo', path: ['listen', 'data'], value: '127.0.0.1:8080' },
    { from: 'demo', path: ['listen', 'ops'], value: '127.0.0.1:9090' },
  ];
  const flags = [embedded, ...loopback, ...settingsOf(command, args)];
  const config = loadConfig({ flags, env: io.env });
  const upstream = await startDemoUpstream();
  try {
    const policies = compilePolicies(config, upstream.origin);
    const storeTarget = requireStore(config.store);
    return await serveUntilSignal({ config, policies, storeTarget }, (running) =>
      io.stdout.write(welcome(running)),
    );
  } finally {
    upstream.close();
  }
}

function welcome({ dataUrl, opsUrl }: Running): string {
  const charge = (amount: number) =>
    `  curl -i ${dataUrl}/charges -H 'Idempotency-Key: order-1' -H 'Content-Type: application/json' -d '{"amount":${amount}}'\n`;
  return `
Oncegate stands at ${dataUrl} in front of a small payments service that charges each time it is asked.
Try these in another terminal:

 1. a charge
${charge(10)}
 2. the same again: the answer is replayed (Idempotent-Replayed: true), nothing is charged
${charge(10)}
 3. the same key for another amount: refused with 422
${charge(99)}
How often it charged: curl ${dataUrl}/charges     Metrics: ${opsUrl}/metrics     Stop: Ctrl-C
Your own service: npm start -- http://127.0.0.1:3000, or oncegate serve http://127.0.0.1:3000 --embedded

`;
}
