import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Teardown } from './postgres.ts';

export interface Execution {
  readonly method: string;
  readonly url: string;
  readonly key: string | undefined;
  readonly headers: IncomingMessage['headers'];
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

export type Respond = (execution: Execution, res: ServerResponse) => void;

export interface TestUpstream {
  readonly url: string;
  /** Everything it ran, in order. */
  readonly executions: Execution[];
  /** How often each key ran. */
  countOf(key: string): number;
  respond: Respond;
  /** Resolves when `count` requests have arrived in all. */
  received(count: number): Promise<void>;
  /** From then on connections are refused. */
  stop(): void;
}

/** An upstream that remembers what it ran. Answers 201 with a body that is different each time, unless told otherwise. */
export async function testUpstream(t: Teardown, respond?: Respond): Promise<TestUpstream> {
  const executions: Execution[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  const upstream = {
    url: '',
    executions,
    countOf: (key: string) => executions.filter((one) => one.key === key).length,
    respond: respond ?? ((_one: Execution, res: ServerResponse) => answer(res, executions.length)),
    received: (count: number) =>
      new Promise<void>((resolve) => {
        waiting.push({ count, resolve });
        notify();
      }),
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
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const key = req.headers['idempotency-key'];
      const execution = {
        method: req.method ?? '',
        url: req.url ?? '',
        key: typeof key === 'string' ? key : undefined,
        headers: req.headers,
        rawHeaders: req.rawHeaders,
        body: Buffer.concat(chunks),
      };
      executions.push(execution);
      notify();
      upstream.respond(execution, res);
    });
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(upstream.stop);
  upstream.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return upstream;
}

function answer(res: ServerResponse, number: number): void {
  res.writeHead(201, { 'Content-Type': 'application/json', Location: `/things/${number}` });
  res.end(JSON.stringify({ number, random: Math.random() }));
}
