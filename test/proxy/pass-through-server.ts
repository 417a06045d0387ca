import { once } from 'node:events';
import net, { type Socket } from 'node:net';
import fastify, { type FastifyInstance } from 'fastify';
import { createMemos } from '../../src/core/memos.ts';
import type { UpstreamTarget } from '../../src/core/policy.ts';
import type { Dialect } from '../../src/core/problem.ts';
import { Budget } from '../../src/proxy/budget.ts';
import {
  type PassThroughDeps,
  passThroughServerOptions,
  registerPassThrough,
} from '../../src/proxy/pass-through.ts';

/** What we need of tap's `t`. */
interface Teardown {
  teardown(fn: () => unknown): unknown;
}

export function target(origin: string, rest: Partial<UpstreamTarget> = {}): UpstreamTarget {
  return { origin, timeoutMs: 10_000, connections: 16, host: 'preserve', ...rest };
}

export interface PassThrough {
  readonly url: string;
  readonly port: number;
  readonly app: FastifyInstance;
  readonly budget: Budget;
}

type Limits = Partial<Pick<PassThroughDeps, 'budget' | 'stallMs' | 'pace'>>;

/** A server that guards nothing, before one upstream or several. */
export async function passThrough(
  t: Teardown,
  targets: readonly [UpstreamTarget, ...UpstreamTarget[]],
  targetOf: (method: string, url: string) => UpstreamTarget = () => targets[0],
  dialect: Dialect = 'ietf',
  { budget = new Budget(256_000_000), ...limits }: Limits = {},
): Promise<PassThrough> {
  let requests = 0;
  const app = fastify({ ...passThroughServerOptions(() => `request-${++requests}`) });
  const isAnswering = () => false;
  const requestIdOf = (request: { id: string }) => request.id;
  const policyOf = (method: string, url: string) => ({
    upstream: targetOf(method, url),
    dialect,
    cors: { origins: [] },
  });
  const memos = createMemos();
  const deps = { policyOf, memos, targets, isAnswering, requestIdOf, tenantHeader: null };
  await registerPassThrough(app, { ...deps, budget, ...limits });
  const url = await app.listen({ port: 0, host: '127.0.0.1' });
  t.teardown(async () => {
    app.server.closeAllConnections();
    await app.close();
  });
  return { url, port: Number(new URL(url).port), app, budget };
}

/** A port that nobody listens on. */
export async function closedPort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as net.AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

export async function connect(t: Teardown, port: number, host = '127.0.0.1'): Promise<Socket> {
  const socket = net.connect(port, host);
  socket.on('error', () => {});
  t.teardown(() => socket.destroy());
  await once(socket, 'connect');
  return socket;
}

/** Everything that comes back until the other side closes, as latin1; the request should ask for that. */
export async function exchange(t: Teardown, port: number, bytes: string | Buffer): Promise<string> {
  const socket = await connect(t, port);
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
  await once(socket, 'close');
  return Buffer.concat(chunks).toString('latin1');
}

/** Resolves when so much has come that `until` is satisfied; everything so far, as latin1. */
export function seen(socket: Socket, until: (text: string) => boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    const onData = (chunk: Buffer) => {
      text += chunk.toString('latin1');
      if (!until(text)) return;
      socket.off('data', onData);
      resolve(text);
    };
    socket.on('data', onData);
    socket.once('close', () => reject(new Error(`closed after ${JSON.stringify(text)}`)));
  });
}
