import { createServer } from 'node:net';
import type { FastifyInstance } from 'fastify';
import type { Address } from './config/address.ts';
import { OncegateError } from './errors.ts';

/** How a person names the address: by a flag, or in the config. */
interface Setting {
  readonly flag: string;
  readonly field: string;
}

const settings = {
  data: { flag: '--listen', field: 'listen.data' },
  ops: { flag: '--ops-listen', field: 'listen.ops' },
} satisfies Record<string, Setting>;

/** Each address that cannot be had, in one error: a person chooses others once. Asked before the store is started or awaited. */
export async function assertFree(addresses: Readonly<Record<keyof typeof settings, Address>>): Promise<void> {
  const faults: string[] = [];
  for (const name of ['data', 'ops'] as const) {
    try {
      await tryListen(addresses[name]);
    } catch (error) {
      faults.push(faultOf(error, addresses[name], settings[name]));
    }
  }
  if (faults.length > 0) throw new OncegateError('port_in_use', faults.join('\n'));
}

export async function listen(
  app: FastifyInstance,
  address: Address,
  name: keyof typeof settings,
): Promise<string> {
  try {
    return await app.listen(address);
  } catch (error) {
    throw new OncegateError('port_in_use', faultOf(error, address, settings[name]), { cause: error });
  }
}

function tryListen({ host, port }: Address): Promise<void> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host, port }, () => server.close(() => resolve()));
  });
}

function faultOf(error: unknown, { host, port }: Address, { flag, field }: Setting): string {
  const { code } = error as { code?: string };
  const why = {
    EADDRINUSE: 'it is in use',
    EACCES: 'it needs privileges',
    EADDRNOTAVAIL: 'it is not of this machine',
    ENOTFOUND: 'its host is not known',
  }[code ?? ''];
  if (why === undefined) throw error;
  return `cannot listen on ${host}:${port}: ${why}. Choose another with ${flag} HOST:PORT, or ${field} in the config.`;
}
