import { type IncomingMessage, request } from 'node:http';
import type { Call } from './facts.ts';
import type { Replica } from './replica.ts';
import { digestOf, type Wish } from './upstream.ts';

export interface Asking {
  readonly call: string;
  readonly run: number;
  readonly replica: Replica;
  readonly tenant: string;
  readonly key: string;
  readonly path: string;
  readonly body: Call['body'];
  readonly wish: Wish;
  readonly requestBytes: number;
  /** In the body of all requests of a run: no answer of ours may show it. */
  readonly secret: string;
}

export interface Asked {
  readonly call: string;
  readonly done: Promise<Call>;
  /** The client goes away, answered or not. */
  leave(): void;
}

/** Milliseconds without a byte: longer than any answer takes, `answer_unsaved` included. */
const patienceMs = 20_000;

/** One request on a connection of its own, and what the client saw of it. Never rejects. */
export function ask(asking: Asking): Asked {
  const { call, run, replica, tenant, key, path, body } = asking;
  const beganAt = Date.now();
  const known = { call, run, replica: replica.index, tenant, key, path, body, beganAt };
  const text = bodyOf(asking);
  const headers = {
    Host: `replica-${replica.index}`,
    'Idempotency-Key': key,
    'X-Tenant': tenant,
    'Torture-Call': call,
    'Content-Type': 'application/json',
    'Content-Length': String(text.length),
  };
  const req = request(replica.url + path, { method: 'POST', agent: false, headers, timeout: patienceMs });
  let hasLeft = false;
  const done = new Promise<Call>((resolve) => {
    const cut = (): void =>
      resolve({ ...known, ...nothing, endedAt: Date.now(), end: hasLeft ? 'left' : 'cut' });
    req.on('error', cut).on('timeout', () => req.destroy());
    req.on('response', (res) => {
      const chunks: Buffer[] = [];
      res.on('data', (chunk: Buffer) => chunks.push(chunk));
      res.on('error', cut).on('close', () => {
        if (!res.complete) return cut();
        const seen = seenIn(res, Buffer.concat(chunks).toString('latin1'));
        resolve({ ...known, ...seen, endedAt: Date.now(), end: 'answered' });
      });
    });
    req.end(text);
  });
  const leave = (): void => {
    hasLeft = true;
    req.destroy();
  };
  return { call, done, leave };
}

type Seen = Pick<Call, 'status' | 'how' | 'code' | 'digest' | 'names' | 'text'>;

const nobody = { start: '', tenant: '', key: '' };
const nothing: Seen = { status: 0, how: '', code: '', digest: '', names: nobody, text: '' };

function bodyOf({ tenant, key, run, wish, requestBytes, secret, body }: Asking): string {
  const pad = 'r'.repeat(requestBytes);
  const differs = body === 'differs' ? { amount: 2 } : { amount: 1 };
  return JSON.stringify({ tenant, key, run, ...differs, secret, ...wish, pad });
}

function seenIn(res: IncomingMessage, body: string): Seen {
  const status = res.statusCode ?? 0;
  const type = res.headers['content-type'] ?? '';
  const how = String(res.headers['idempotency-status'] ?? '');
  if (type === 'application/json') {
    const { start = '', tenant = '', key = '' } = JSON.parse(body) as Partial<typeof nobody>;
    const digest = digestOf({ status, type, location: res.headers.location ?? '', body });
    return { ...nothing, status, how, digest, names: { start, tenant, key } };
  }
  const { code = '' } = (type.endsWith('json') ? JSON.parse(body) : {}) as { code?: string };
  return { ...nothing, status, how, code, text: `${res.rawHeaders.join('\n')}\n${body}` };
}
