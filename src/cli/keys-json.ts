import { createMemos } from '../core/memos.ts';
import type { StoredAnswer } from '../core/record.ts';
import { decodeStored } from '../core/response.ts';
import type { History, RecordView } from '../store/operator.ts';
import { shortId } from './keys-text.ts';

const time = (atMs: number | null): string | null => (atMs === null ? null : new Date(atMs).toISOString());

/** For scripts: never the answer itself, unless asked for by name. */
export function recordJson(record: RecordView): Record<string, unknown> {
  const { scope, seenAtMs, reservedAtMs, deadlineMs, completedAtMs, retainUntilMs, blockedUntilMs, ...rest } =
    record;
  return {
    id: shortId(record),
    scope: scope.toString('hex'),
    ...rest,
    ageMs: Math.round(seenAtMs - reservedAtMs),
    reservedAt: time(reservedAtMs),
    deadline: time(deadlineMs),
    completedAt: time(completedAtMs),
    retainUntil: time(retainUntilMs),
    blockedUntil: time(blockedUntilMs),
  };
}

export function historyJson({ audit, lateAnswers }: History): Record<string, unknown> {
  return {
    audit: audit.map(({ atMs, ...entry }) => ({ at: time(atMs), ...entry })),
    lateAnswers: lateAnswers.map(({ receivedAtMs, ...late }) => ({
      receivedAt: time(receivedAtMs),
      ...late,
    })),
  };
}

/** The body in base64: it is bytes, and may be no text. */
export function answerJson(answer: StoredAnswer | null): Record<string, unknown> | null {
  if (answer === null) return null;
  const { status, headers, body, closeFramed } = answer;
  return {
    status,
    headers: decodeStored(createMemos(), headers),
    bodyBase64: body?.toString('base64') ?? null,
    closeFramed,
  };
}
