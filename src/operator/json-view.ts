import { createMemos } from '../core/memos.ts';
import { decodeStored } from '../core/response.ts';
import type { ChangeResult, History, RecordView } from '../store/operator.ts';
import { shortId } from './short-id.ts';
import type { AnswerView } from './view.ts';

const time = (atMs: number | null): string | null => (atMs === null ? null : new Date(atMs).toISOString());

/** A record as JSON carries it, for scripts and for an API. Never its answer: see `answerJson`. */
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

/** Has no `answer` where it was not asked for. The body is in base64: it is bytes, and may be no text. */
export function answerJson(view: AnswerView): { readonly answer?: Record<string, unknown> | null } {
  switch (view.kind) {
    case 'not_asked':
      return {};
    case 'none':
      return { answer: null };
    case 'kept': {
      const { status, headers, body, closeFramed } = view.answer;
      const bodyBase64 = body?.toString('base64') ?? null;
      return { answer: { status, headers: decodeStored(createMemos(), headers), bodyBase64, closeFramed } };
    }
  }
}

/** What a change came to. `now`: the record as it is then; null: it is gone, or nobody could see. */
export function changeJson(before: RecordView, result: ChangeResult): Record<string, unknown> {
  const now = 'record' in result && result.record !== null ? recordJson(result.record) : null;
  const error = 'cause' in result ? result.cause.message : undefined;
  return { result: result.kind, id: shortId(before), now, error };
}
