import { randomUUID } from 'node:crypto';
import { chargePath, path, requestBody, slowPath } from './exchange.ts';

/** What the clients of a contender send. */
export type Traffic =
  /** Each request has a key of its own. */
  | { readonly kind: 'first' }
  /** Keys that were answered before, taken in turn. */
  | { readonly kind: 'replays'; readonly keys: readonly string[] }
  /** Every fifth is a replay, the others are first requests. */
  | { readonly kind: 'mixed'; readonly keys: readonly string[] }
  /** Each key by several connections at once, while the upstream takes its time. */
  | { readonly kind: 'duplicates' }
  /** GET, which nobody guards. */
  | { readonly kind: 'reads' };

/** What connections that go in step send at the same moment, and what they must get. */
export interface Step {
  readonly text: string;
  /** Stands at the beginning of every answer. */
  readonly status: string;
  /** How many of the answers say that they are replays. */
  readonly replayed: number;
}

const duplicatesPerKey = 4;
const mixedReplayEvery = 5;

/** Connections that send the same at once. */
export function connectionsInStep(traffic: Traffic): number {
  return traffic.kind === 'duplicates' ? duplicatesPerKey : 1;
}

/** How often the upstream must run for so many steps: the proof that a contender did what it is measured for. */
export function executionsOf(traffic: Traffic, steps: number): number {
  switch (traffic.kind) {
    case 'replays':
      return 0;
    case 'mixed':
      return steps - Math.floor(steps / mixedReplayEvery);
    case 'first':
    case 'duplicates':
    case 'reads':
      return steps;
  }
}

export function stepAt(traffic: Traffic, index: number): Step {
  switch (traffic.kind) {
    case 'first':
      return first(path);
    case 'replays':
      return replay(traffic.keys, index);
    case 'mixed': {
      const isReplay = index % mixedReplayEvery === mixedReplayEvery - 1;
      return isReplay ? replay(traffic.keys, Math.floor(index / mixedReplayEvery)) : first(path);
    }
    case 'duplicates':
      return { ...first(slowPath), replayed: duplicatesPerKey - 1 };
    case 'reads':
      return { text: read, status: 'HTTP/1.1 200 ', replayed: 0 };
  }
}

/** Makes the answers that are replayed later: the first of each key. */
export function priming(keys: readonly string[], index: number): Step {
  return { text: charge(path, keys[index] as string), status: created, replayed: 0 };
}

function first(to: string): Step {
  return { text: charge(to, randomUUID()), status: created, replayed: 0 };
}

function replay(keys: readonly string[], index: number): Step {
  return { text: charge(path, keys[index % keys.length] as string), status: created, replayed: 1 };
}

const created = 'HTTP/1.1 201 ';

const common = `Host: 127.0.0.1\r
User-Agent: bench/1\r
Accept: application/json\r
Authorization: Bearer sk_test_4eC39HqLyjWDarjtT1zdp7dc\r
`;

const afterPath = ` HTTP/1.1\r
${common}Content-Type: application/json\r
Content-Length: ${Buffer.byteLength(requestBody)}\r
Idempotency-Key: `;

function charge(to: string, key: string): string {
  return `POST ${to}${afterPath}${key}\r\n\r\n${requestBody}`;
}

const read = `GET ${chargePath} HTTP/1.1\r\n${common}\r\n`;
