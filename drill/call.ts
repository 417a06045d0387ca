import { setTimeout as delay } from 'node:timers/promises';
import { type Answer, ask, problemOf } from '../test/helpers/client.ts';

/** What one try came to. Only the first two end a call. */
export type Seen =
  /** `bytes`: all that a replay must repeat: status, headers, body. */
  | { readonly kind: 'answered'; readonly how: 'executed' | 'replayed'; readonly bytes: string }
  | { readonly kind: 'unknown' }
  /** `code` of the problem, or of the socket's error. */
  | { readonly kind: 'refused'; readonly code: string };

export type Final = Exclude<Seen, { kind: 'refused' }> | { readonly kind: 'gave_up' };

/** Milliseconds between two tries of one client. Short: a drill wants retries, not politeness. */
const pauseMs = 50;

export async function tryOnce(url: string, key: string): Promise<Seen> {
  try {
    return seenIn(await ask(`${url}/charges`, { key, body: `{"for":"${key}"}` }));
  } catch (error) {
    return { kind: 'refused', code: (error as NodeJS.ErrnoException).code ?? 'cut' };
  }
}

function seenIn(answer: Answer): Seen {
  const how = answer.headers['idempotency-status'];
  if (answer.status === 201 && (how === 'executed' || how === 'replayed')) {
    const { 'content-type': type, location } = answer.headers;
    return { kind: 'answered', how, bytes: `${answer.status} ${type} ${location} ${answer.body.toString()}` };
  }
  const { code } = problemOf(answer);
  return code === 'outcome_unknown' ? { kind: 'unknown' } : { kind: 'refused', code };
}

export interface Persistence {
  /** Tried in turn. */
  readonly urls: readonly string[];
  readonly key: string;
  readonly withinMs: number;
  readonly onTry?: (seen: Seen) => void;
}

/** As a good client does: the same key, on whichever sidecar answers, until there is an end to it. */
export async function persist({ urls, key, withinMs, onTry }: Persistence): Promise<Final> {
  const untilMs = performance.now() + withinMs;
  for (let turn = 0; ; turn += 1) {
    const seen = await tryOnce(urls[turn % urls.length] as string, key);
    onTry?.(seen);
    if (seen.kind !== 'refused') return seen;
    if (performance.now() > untilMs) return { kind: 'gave_up' };
    await delay(pauseMs);
  }
}
