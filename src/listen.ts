import dns from 'node:dns';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server } from 'node:net';
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
    if (address.host !== 'localhost') return await app.listen(address);
    return await listenOnAll(app, await dns.promises.lookup(address.host, { all: true }), address.port);
  } catch (error) {
    throw new OncegateError('port_in_use', faultOf(error, address, settings[name]), { cause: error });
  }
}

/**
 * `localhost` is two addresses on most machines. For the second one Fastify would make a server of its own, which has none of our
 * listeners and limits: nothing would count its connections, and a refused request would not seal them. So what connects to another
 * address than the first is handed to the one server.
 */
async function listenOnAll(
  app: FastifyInstance,
  [first, ...others]: readonly dns.LookupAddress[],
  port: number,
): Promise<string> {
  const servers: Server[] = [];
  let closed: Promise<unknown> = Promise.resolve();
  app.addHook('preClose', (done) => {
    closed = Promise.all(servers.map((server) => once(server.close(), 'close')));
    done();
  });
  // Its connections are not counted by the one server.
  app.addHook('onClose', () => closed.then(() => {}));
  const url = await app.listen({ host: first?.address ?? 'localhost', port });
  for (const { address } of others) {
    // As Node's HTTP server makes its own.
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
      app.server.emit('connection', socket),
    );
    server.listen({ host: address, port: (app.server.address() as AddressInfo).port });
    // Without it, as when the machine has no IPv6: the first one will do.
    await once(server, 'listening').then(
      () => servers.push(server),
      () => {},
    );
  }
  return url;
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
