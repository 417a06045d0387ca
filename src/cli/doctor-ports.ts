import { createServer } from 'node:net';
import type { Address } from '../config/address.ts';
import type { PortFacts } from '../doctor/judge-exposure.ts';

/** Milliseconds for a sidecar of this machine to answer. */
const answerMs = 2_000;

/** Listens there for a moment, as serve would. */
export function tryPort({ host, port }: Address): Promise<PortFacts> {
  return new Promise((resolve) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', ({ code }: NodeJS.ErrnoException) => {
      if (code === 'EADDRINUSE') resolve('in_use');
      else resolve(code === 'EACCES' ? 'not_allowed' : 'not_of_this_machine');
    });
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve('free')));
  });
}

/** Asked for its metrics, whose names nobody else has: many a service answers /livez. */
export async function isOncegate({ host, port }: Address): Promise<boolean> {
  const target = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  const url = `http://${target.includes(':') ? `[${target}]` : target}:${port}/metrics`;
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(answerMs), redirect: 'error' });
    return (await answer.text()).includes('\noncegate_');
  } catch {
    return false;
  }
}
