import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Teardown } from './postgres.ts';

export interface Execution {
  readonly method: string;
  readonly url: string;
  readonly key: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly rawHeaders: readonly string[];
  readonly rawTrailers: readonly string[];
  readonly body: Buffer;
}

export type Respond = (execution: Execution, res: ServerResponse) => void;

/** What a request wants done to it. It travels in a header, which is no part of a fingerprint. */
export interface Steering {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** So many bytes for a body. */
  readonly bytes?: number;
  /** The connection is cut once the request was read. */
  readonly cut?: boolean;
  /** Nothing is answered before `letGo()`. */
  readonly hold?: boolean;
}

export interface TestUpstream {
  readonly url: string;
  /** For what is no answer, such as an upgrade. */
  readonly server: Server;
  /** Everything it ran, in order. */
  readonly executions: Execution[];
  /** How often each key ran. */
  countOf(key: string): number;
  /** Called when a request was read; as long as a test gives none, the request itself steers its answer. */
  respond: Respond;
  /** Called when the head of a request is there; it may pause the request, whose body then waits. */
  begun: (req: IncomingMessage) => void;
  /** Resolves when `count` requests have arrived in all. */
  received(count: number): Promise<void>;
  /** Answers what is held, or the first `count` of it; gives back how many that were. */
  letGo(count?: number): number;
  /** From then on connections are refused. */
  stop(): void;
}

/**
 * The upstream of all tests that need no more than an HTTP server: it remembers what it ran, and is steered by the test or by each
 * request. Unsteered it answers 201 with a body that is different each time.
 */
export async function testUpstream(t: Teardown, respond?: Respond): Promise<TestUpstream> {
  const executions: Execution[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  const held: (() => void)[] = [];
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const execution = executionOf(req, Buffer.concat(chunks));
      executions.push(execution);
      notify();
      upstream.respond(execution, res);
    });
    upstream.begun(req);
  });
  const upstream: TestUpstream & { url: string } = {
    url: '',
    server,
    executions,
    countOf: (key: string) => executions.filter((one) => one.key === key).length,
    respond: respond ?? ((execution, res) => steer(execution, res, { number: executions.length, held })),
    begun: () => {},
    received: (count: number) =>
      new Promise<void>((resolve) => {
        waiting.push({ count, resolve });
        notify();
      }),
    letGo: (count = held.length) => {
      const answers = held.splice(0, count);
      for (const answer of answers) answer();
      return answers.length;
    },
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  const notify = () => {
    for (const one of waiting.splice(0)) {
      if (executions.length >= one.count) one.resolve();
      else waiting.push(one);
    }
  };
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(upstream.stop);
  upstream.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return upstream;
}

function executionOf(req: IncomingMessage, body: Buffer): Execution {
  const key = req.headers['idempotency-key'];
  const { method = '', url = '', headers, rawHeaders, rawTrailers } = req;
  return {
    method,
    url,
    key: typeof key === 'string' ? key : undefined,
    headers,
    rawHeaders,
    rawTrailers,
    body,
  };
}

function steer(
  { headers }: Execution,
  res: ServerResponse,
  { number, held }: { number: number; held: (() => void)[] },
): void {
  const steering = JSON.parse((headers['x-steer'] as string | undefined) ?? '{}') as Steering;
  if (steering.cut === true) {
    (res.socket as Socket).resetAndDestroy();
    return;
  }
  const given = steering.body ?? (steering.bytes === undefined ? undefined : 'x'.repeat(steering.bytes));
  const ours = { 'Content-Type': 'application/json', Location: `/things/${number}` };
  const fields = { ...(given === undefined ? ours : {}), ...steering.headers };
  const body = given ?? JSON.stringify({ ran: number, random: Math.random() });
  const answer = () => res.writeHead(steering.status ?? 201, fields).end(body);
  if (steering.hold === true) held.push(answer);
  else answer();
}
