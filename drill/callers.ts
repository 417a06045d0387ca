import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Teardown } from '../test/helpers/postgres.ts';

export interface Told {
  readonly status: number;
  /** `Idempotency-Status`. */
  readonly how: string;
  readonly location: string;
  readonly body: string;
}

/** Connections being opened at once: below the backlog of a Node server (511). */
const openingAtOnce = 200;

/**
 * Callers with a kept-alive connection each, all in one process: a socket and a string are all that one needs, where
 * Node's own client would spend 50 kB on each.
 */
export class Callers {
  readonly #sockets: readonly Socket[];

  private constructor(sockets: readonly Socket[]) {
    this.#sockets = sockets;
  }

  /** Every other one speaks to the next of `urls`. */
  static async open(t: Teardown, urls: readonly string[], count: number): Promise<Callers> {
    const sockets: Socket[] = [];
    t.teardown(() => {
      for (const socket of sockets) socket.destroy();
    });
    while (sockets.length < count) {
      const some = Array.from({ length: Math.min(openingAtOnce, count - sockets.length) }, (_, i) => {
        const { hostname, port } = new URL(urls[i % urls.length] as string);
        return connect({ host: hostname, port: Number(port), noDelay: true });
      });
      sockets.push(...some);
      await Promise.all(some.map((socket) => once(socket, 'connect')));
    }
    return new Callers(sockets);
  }

  /** All at once. One promise per caller; it rejects when the connection ends before the answer. */
  send(key: string): Promise<Told>[] {
    const request = requestOf(key);
    return this.#sockets.map((socket) => exchange(socket, request));
  }
}

function exchange(socket: Socket, request: string): Promise<Told> {
  return new Promise((resolve, reject) => {
    let text = '';
    const onData = (chunk: Buffer): void => {
      text += chunk.toString('latin1');
      const told = wholeAnswerIn(text);
      if (told !== null) end(() => resolve(told));
    };
    const onEnd = (): void => end(() => reject(new Error(`cut after ${text.length} bytes`)));
    const end = (then: () => void): void => {
      socket.off('data', onData).off('error', onEnd).off('close', onEnd);
      then();
    };
    socket.on('data', onData).on('error', onEnd).on('close', onEnd);
    socket.write(request);
  });
}

/** Made once: a load generator reads a million heads. */
const fields = {
  length: /^content-length: (.*)$/im,
  how: /^idempotency-status: (.*)$/im,
  location: /^location: (.*)$/im,
};

/** null: more must come. Answers here have a length and no chunks. */
export function wholeAnswerIn(text: string): Told | null {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return null;
  const head = text.slice(0, headEnd);
  const field = (name: keyof typeof fields): string => fields[name].exec(head)?.[1]?.trim() ?? '';
  const body = text.slice(headEnd + 4);
  if (body.length < Number(field('length'))) return null;
  return { status: Number(head.slice(9, 12)), how: field('how'), location: field('location'), body };
}

/** All bytes of a guarded request of the drills. */
export function requestOf(key: string): string {
  const body = `{"for":"${key}"}`;
  const head = [
    'POST /charges HTTP/1.1',
    'Host: drill',
    `Idempotency-Key: ${key}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}

/** All that a replay must repeat. */
export const bytesOf = (told: Told): string => `${told.status} ${told.location} ${told.body}`;

/** What it is in a word: how the answer came about, or the problem's code. */
export function wordOf({ status, how, body }: Told): string {
  return status === 201 ? how : (JSON.parse(body) as { code: string }).code;
}
