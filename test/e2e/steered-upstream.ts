import type { Socket } from 'node:net';
import { type Answer, type Ask, ask } from '../helpers/client.ts';
import type { Teardown } from '../helpers/postgres.ts';
import { type TestUpstream, testUpstream } from '../helpers/upstream.ts';

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

export interface SteeredUpstream extends TestUpstream {
  /** Answers what is held, or the first `count` of it; gives back how many that were. */
  letGo(count?: number): number;
}

export async function steeredUpstream(t: Teardown): Promise<SteeredUpstream> {
  const held: (() => void)[] = [];
  const upstream = await testUpstream(t, (execution, res) => {
    const steering = JSON.parse((execution.headers['x-steer'] as string | undefined) ?? '{}') as Steering;
    if (steering.cut === true) {
      (res.socket as Socket).resetAndDestroy();
      return;
    }
    const body =
      steering.body ??
      (steering.bytes === undefined ? `ran ${upstream.executions.length}` : 'x'.repeat(steering.bytes));
    const answer = () => res.writeHead(steering.status ?? 201, steering.headers).end(body);
    if (steering.hold === true) held.push(answer);
    else answer();
  });
  const letGo = (count = held.length) => {
    const answers = held.splice(0, count);
    for (const answer of answers) answer();
    return answers.length;
  };
  // The same object: `received` and `executions` must stay those of the server.
  return Object.assign(upstream, { letGo });
}

/** A guarded request as these tests send it: with a key, a small body, and what the upstream is to do. */
export function send(
  url: string,
  key: string,
  options: Ask & { readonly steer?: Steering } = {},
): Promise<Answer> {
  const { steer, ...rest } = options;
  const headers = { ...(steer === undefined ? {} : { 'X-Steer': JSON.stringify(steer) }), ...rest.headers };
  return ask(url, { key, body: '{"amount":1}', ...rest, headers });
}
