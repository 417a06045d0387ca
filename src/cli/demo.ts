import { randomBytes } from 'node:crypto';
import { compilePolicies } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import type { Running } from '../main.ts';
import { type Args, settingsOf } from './args.ts';
import type { Command } from './commands.ts';
import { Tally } from './demo-tally.ts';
import { startDemoUpstream } from './demo-upstream.ts';
import { nodeWarning } from './node-line.ts';
import { requireStore } from './require-store.ts';
import type { Io } from './run.ts';
import { serveUntilSignal } from './serve.ts';
import { storeFlags } from './store-flags.ts';

/** Below variables and flags: on this machine only, and quiet, for the tally says what happens. */
const settings = `
listen: { data: 127.0.0.1:8080, ops: 127.0.0.1:9090 }
log: { level: error }
`;

/** Everything on this machine: an embedded store, a flaky payments service that charges each time it is asked, and us. */
export async function demoCommand(command: Command, args: Args, io: Io): Promise<number> {
  const embedded = { from: 'demo', path: ['store', 'embedded'], value: true };
  const config = loadConfig({ text: settings, flags: [embedded, ...settingsOf(command, args)], env: io.env });
  io.stdout.write('Starting an embedded PostgreSQL and a small payments service …\n');
  const tally = new Tally(io.stdout);
  const upstream = await startDemoUpstream(() => tally.charged());
  try {
    const policies = compilePolicies(config, upstream.origin);
    const storeTarget = requireStore(config.store);
    const code = await serveUntilSignal({ config, policies, storeTarget }, (running) => {
      io.stdout.write(welcome(running, `--embedded${storeFlags(args)}`));
      tally.begin();
    });
    tally.end();
    io.stdout.write('Stopped.\n');
    return code;
  } finally {
    upstream.close();
  }
}

function welcome({ dataUrl, opsUrl }: Running, store: string): string {
  // Of this run alone: the store remembers the keys of earlier ones.
  const key = `order-${randomBytes(2).toString('hex')}`;
  const json = `-H 'Content-Type: application/json'`;
  const charge = (amount: number) =>
    `  curl -i ${dataUrl}/charges -H 'Idempotency-Key: ${key}' ${json} -d '{"amount":${amount}}'\n`;
  const more = `  for n in 2 3 3; do curl -i ${dataUrl}/charges -H "Idempotency-Key: ${key}-$n" ${json} -d '{"amount":10}'; echo; done\n`;
  const node = nodeWarning(process.version, new Date());
  return `
Oncegate stands at ${dataUrl} in front of a slow payments service that charges each time it is asked.
Try these in another terminal, in this directory:

 1. a charge
${charge(10)}
 2. the same again: the answer is replayed (Idempotent-Replayed: true), nothing is charged
${charge(10)}
 3. the same key for another amount: refused with 422
${charge(99)}
 4. two more charges; the answer of every third charge is lost, as networks do: 502. Sent again its key gets 409
    outcome_unknown, and nothing is charged twice
${more}
 5. which outcomes are unknown; then settle one, with its ID from the list. Retries get the answer that you give
  oncegate keys list ${store}
  oncegate keys resolve ID ${store} --completed --status 201 --body '{"status":"paid"}' --retention 1d --reason 'the bank says paid'

Metrics: ${opsUrl}/metrics     Your own service: oncegate serve http://127.0.0.1:3000 --embedded     Stop: Ctrl-C
${node === null ? '' : `! ${node}\n`}
`;
}
