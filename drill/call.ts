import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type Answer, ask, problemOf } from '../test/helpers/client.ts';

/** What one try came to. All but the last end a call. */
export type Seen =
  /** `bytes`: all that a replay must repeat: status, headers, body (of a long one its digest). */
  | {
      readonly kind: 'answered';
      readonly how: 'executed' | 'replayed';
      readonly bytes: string;
      readonly bodyBytes: number;
    }
  | { readonly kind: 'unknown' }
  /** It ran, and its answer was too large to keep. */
  | { readonly kind: 'not_kept' }
  /** `code` of the problem, or of the socket's error; `released`: the upstream's answer freed the key. */
  | { readonly kind: 'refused'; readonly code: string };

export type Final = Exclude<Seen, { kind: 'refused' }> | { readonly kind: 'gave_up' };
export type Answered = Extract<Seen, { kind: 'answered' }>;

/** Bytes: `maxStoredBody` of drills whose upstream has long answers. */
export const maxStoredBytes = 256 * 1024;
/** Longer bodies are compared by digest: a drill remembers every answer. */
const longBytes = 1_024;
/** Milliseconds between two tries of one client. Short: a drill wants retries, not politeness. */
const pauseMs = 50;

export async function tryOnce(url: string, key: string, signal?: AbortSignal): Promise<Seen> {
  try {
    const request = { key, body: `{"for":"${key}"}` };
    return seenIn(await ask(`${url}/charges`, signal === undefined ? request : { ...request, signal }));
  } catch (error) {
    return { kind: 'refused', code: (error as NodeJS.ErrnoException).code ?? 'cut' };
  }
}

export const isProblem = ({ headers }: Answer): boolean =>
  headers['content-type'] === 'application/problem+json';

function seenIn(answer: Answer): Seen {
  if (isProblem(answer)) {
    const { code } = problemOf(answer);
    if (code === 'outcome_unknown') return { kind: 'unknown' };
    return code === 'response_not_retained' ? { kind: 'not_kept' } : { kind: 'refused', code };
  }
  const { 'content-type': type, location, 'idempotency-status': how } = answer.headers;
  if (how === 'unknown') return { kind: 'unknown' };
  if (how !== 'executed' && how !== 'replayed') return { kind: 'refused', code: String(how) };
  const bytes = `${answer.status} ${type} ${location} ${textOf(answer.body)}`;
  return { kind: 'answered', how, bytes, bodyBytes: answer.body.length };
}

function textOf(body: Buffer): string {
  if (body.length <= longBytes) return body.toString();
  return `${body.length} bytes, ${createHash('sha256').update(body).digest('hex')}`;
}

/** Whether `now` is what may follow an answer that was seen. */
export function repeats(before: Answered, now: Final): boolean {
  if (now.kind === 'not_kept') return before.bodyBytes > maxStoredBytes;
  return now.kind === 'answered' && now.bytes === before.bytes;
}

export interface Persistence {
  /** Tried in turn, each as it is then: a replica that was restarted has another. */
  readonly urls: readonly string[];
  /** The first to be tried. */
  readonly from?: number;
  readonly key: string;
  readonly withinMs: number;
  /** Milliseconds after which a client leaves a try and makes the next. */
  readonly tryMs?: number;
  readonly onTry?: (seen: Seen) => void;
}

/** As a good client does: the same key, on whichever sidecar answers, until there is an end to it. */
export async function persist(persistence: Persistence): Promise<Final> {
  const { urls, from = 0, key, withinMs, tryMs, onTry } = persistence;
  const untilMs = performance.now() + withinMs;
  for (let turn = from; ; turn += 1) {
    const signal = tryMs === undefined ? undefined : AbortSignal.timeout(tryMs);
    const seen = await tryOnce(urls[turn % urls.length] as string, key, signal);
    onTry?.(seen);
    if (seen.kind !== 'refused') return seen;
    if (performance.now() > untilMs) return { kind: 'gave_up' };
    await delay(pauseMs);
  }
}
