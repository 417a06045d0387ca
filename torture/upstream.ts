/**
 * The service behind the sidecars, a process of its own. It writes down each request when its head is there and each answer
 * before its first byte leaves, synced to disk; requests say themselves how they want to be answered.
 *   node --import=tsx torture/upstream.ts LOG
 */
import { createHash, randomBytes } from 'node:crypto';
import { fdatasyncSync, openSync, writeSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** In the body of each request. */
export interface Wish {
  readonly statuses: readonly number[];
  readonly answerBytes: number;
  /** Of the first start: nothing, or half of the body, before `release`. */
  readonly hold: 'no' | 'answer' | 'half';
}

export type Line =
  | {
      readonly what: 'start';
      readonly start: string;
      readonly run: number;
      readonly call: string;
      readonly tenant: string;
      readonly key: string;
      readonly path: string;
      readonly attempt: string;
      readonly replica: number;
      readonly at: number;
    }
  | {
      readonly what: 'answer';
      readonly start: string;
      readonly run: number;
      readonly at: number;
      readonly status: number;
      readonly digest: string;
      readonly token: string;
    }
  /** Whether all of it was taken off our hands. */
  | {
      readonly what: 'end';
      readonly start: string;
      readonly run: number;
      readonly at: number;
      readonly end: 'sent' | 'cut';
    };

type Started = Extract<Line, { what: 'start' }>;

/** Of all that a replay must repeat. */
export function digestOf(answer: { status: number; type: string; location: string; body: string }): string {
  const text = [answer.status, answer.type, answer.location, answer.body].join('\n');
  return createHash('sha256').update(text).digest('base64url').slice(0, 22);
}

const type = 'application/json';
const boot = randomBytes(3).toString('hex');
let count = 0;
const startsOf = new Map<string, number>();
/** What goes on when the client that it was sent for says so; a release that came first is kept. */
const held = new Map<string, () => void>();
const released = new Set<string>();

function serve(file: string): void {
  const log = openSync(file, 'a');
  const write = (line: Line): void => {
    writeSync(log, `${JSON.stringify(line)}\n`);
    fdatasyncSync(log);
  };
  const server = createServer((req, res) => {
    const line = startLine(req);
    write(line);
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => answer(write, line, JSON.parse(Buffer.concat(chunks).toString()) as Wish, res));
    res.on('close', () => {
      const { start, run } = line;
      write({ what: 'end', start, run, at: Date.now(), end: res.writableFinished ? 'sent' : 'cut' });
    });
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }));
  process.on('message', (call: string) => {
    const goOn = held.get(call);
    if (goOn === undefined) released.add(call);
    else goOn();
    held.delete(call);
  });
  process.on('disconnect', () => process.exit(0));
}

function startLine(req: IncomingMessage): Started {
  const header = (name: string): string => String(req.headers[name] ?? '');
  const call = header('torture-call');
  return {
    what: 'start',
    start: `${boot}-${++count}`,
    run: Number(call.split('.')[0]),
    call,
    tenant: header('x-tenant'),
    key: header('idempotency-key'),
    path: req.url ?? '',
    attempt: header('oncegate-attempt'),
    replica: Number(header('host').replace('replica-', '')),
    at: Date.now(),
  };
}

function answer(write: (line: Line) => void, line: Started, wish: Wish, res: ServerResponse): void {
  const { start, run, call, tenant, key } = line;
  const id = `${tenant} ${key}`;
  const nth = startsOf.get(id) ?? 0;
  startsOf.set(id, nth + 1);
  const status = wish.statuses[Math.min(nth, wish.statuses.length - 1)] ?? 201;
  const token = randomBytes(9).toString('base64url');
  const pad = 'x'.repeat(wish.answerBytes);
  const body = JSON.stringify({ start, tenant, key, run, token, pad });
  const location = `/starts/${start}`;
  const say = (): void => {
    write({
      what: 'answer',
      start,
      run,
      at: Date.now(),
      status,
      digest: digestOf({ status, type, location, body }),
      token,
    });
    res.writeHead(status, { 'Content-Type': type, Location: location, 'Content-Length': body.length });
  };
  const half = body.length >> 1;
  if (nth > 0 || wish.hold === 'no') {
    say();
    res.end(body);
  } else if (wish.hold === 'half') {
    say();
    res.write(body.slice(0, half));
    whenReleased(call, () => res.end(body.slice(half)));
  } else {
    whenReleased(call, () => {
      say();
      res.end(body);
    });
  }
}

function whenReleased(call: string, goOn: () => void): void {
  if (released.delete(call)) goOn();
  else held.set(call, goOn);
}

const [, script, file] = process.argv;
if (script === import.meta.filename && file !== undefined) serve(file);
