import { Agent, type IncomingHttpHeaders, request } from 'node:http';
import type { Steering } from './upstream.ts';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
}

export interface Ask {
  readonly method?: string;
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string | string[]>>;
  readonly body?: string | Buffer;
  readonly signal?: AbortSignal;
  /** For more connections at once than all tests share. */
  readonly agent?: Agent;
}

const agent = new Agent({ keepAlive: true, maxSockets: 512, timeout: 60_000 });

/** One plain request over a real socket; JSON unless told otherwise. */
export function ask(url: string, options: Ask = {}): Promise<Answer> {
  const body = options.body ?? '';
  const headers = {
    ...(options.key === undefined ? {} : { 'Idempotency-Key': options.key }),
    ...(body.length === 0 ? {} : { 'Content-Type': 'application/json' }),
    'Content-Length': String(Buffer.byteLength(body)),
    ...options.headers,
  };
  return new Promise((resolve, reject) => {
    const init = { agent: options.agent ?? agent, method: options.method ?? 'POST', headers };
    const req = request(
      url,
      options.signal === undefined ? init : { ...init, signal: options.signal },
      (res) => {
        const chunks: Buffer[] = [];
        res.on('data', (chunk: Buffer) => chunks.push(chunk));
        res.on('error', reject);
        res.on('end', () => {
          const { headers, rawHeaders } = res;
          resolve({ status: res.statusCode ?? 0, headers, rawHeaders, body: Buffer.concat(chunks) });
        });
      },
    );
    req.on('error', reject);
    req.end(body);
  });
}

/** A guarded request: with a key, a small body, and what the upstream is to do. */
export function send(
  url: string,
  key: string,
  options: Ask & { readonly steer?: Steering } = {},
): Promise<Answer> {
  const { steer, ...rest } = options;
  const headers = { ...(steer === undefined ? {} : { 'X-Steer': JSON.stringify(steer) }), ...rest.headers };
  return ask(url, { key, body: '{"amount":1}', ...rest, headers });
}

export function problemOf(answer: Answer): {
  code: string;
  status: number;
  retryable: boolean;
  detail: string;
} {
  return JSON.parse(answer.body.toString()) as ReturnType<typeof problemOf>;
}
