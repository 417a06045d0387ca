import { createMemos } from '../core/memos.ts';
import { decodeStored } from '../core/response.ts';
import { answerJson, historyJson, recordJson } from '../operator/json-view.ts';
import { precisionFor } from '../operator/lookup.ts';
import { shortId } from '../operator/short-id.ts';
import { type AnswerView, view } from '../operator/view.ts';
import type { History, RecordView } from '../store/operator.ts';
import { hasFlag, type KeysCall, type Ready, say } from './keys-call.ts';
import { finder } from './keys-find.ts';
import { nextText, nextWords } from './keys-next.ts';
import { moment, plain, table, timeText } from './keys-text.ts';

export function showKey(call: KeysCall): Ready {
  const find = finder(call, precisionFor({ kind: 'show' }));
  const withAnswer = hasFlag(call, 'answer');
  return async (store) => {
    const record = await find(store);
    if (record === null) return 1;
    const { history, answer, next } = await view({ store, settings: call.settings }, record, { withAnswer });
    const steps = next.map((step) => nextWords(call, record, step));
    if (hasFlag(call, 'json')) {
      say(
        call,
        JSON.stringify({
          ...recordJson(record),
          ...historyJson(history),
          ...answerJson(answer),
          next: steps,
        }),
      );
      return 0;
    }
    say(call, table([...facts(record), ...past(history)]));
    if (answer.kind !== 'not_asked') say(call, `\n${answerText(answer)}`);
    say(call, `\n${steps.map(nextText).join('\n')}`);
    return 0;
  };
}

const meaning: Readonly<Record<RecordView['state'], string>> = {
  in_progress: 'an attempt works on it',
  completed: 'answered; retries get that answer',
  failed_retryable: 'it did not run, or was freed; the next retry runs',
  unknown: 'nobody knows whether it ran; retries get 409 outcome_unknown',
  dead_letter: 'given up: nobody could find out whether it ran; retries get 409 outcome_unknown',
};

function facts(record: RecordView): string[][] {
  const { state, completedAtMs, retainUntilMs, status, lastError, bodyBytes } = record;
  const body = bodyBytes === null ? 'no body kept' : `body of ${bodyBytes.toLocaleString('en')} bytes`;
  return [
    ['id', shortId(record)],
    ['state', `${state}: ${meaning[state]}`],
    ['request', plain(`${record.method} ${record.path}`)],
    ['tenant', plain(record.tenant ?? '-')],
    ['key', plain(record.key)],
    ['request id', plain(record.requestId)],
    ['attempt', `${record.attempt}, epoch ${record.epoch}${sentText(record)}`],
    ['credentials', record.hadCredentials ? 'the request had some' : 'none'],
    ['reserved', moment(record.reservedAtMs, record)],
    ['deadline', moment(record.deadlineMs, record)],
    ['instance', `${record.instance}, ${record.instanceAlive ? 'its lease is alive' : 'its lease is over'}`],
    ...(state === 'completed'
      ? [['answer', `status ${status}, ${body}`]]
      : [['status seen', String(status ?? '-')]]),
    ['last error', plain(lastError ?? '-')],
    ...(completedAtMs === null ? [] : [['completed', moment(completedAtMs, record)]]),
    ...(retainUntilMs === null ? [] : [['kept until', moment(retainUntilMs, record)]]),
  ];
}

/** Once it is no longer in progress, how it ended says more. */
function sentText({ state, dispatched }: RecordView): string {
  if (state !== 'in_progress') return '';
  return dispatched === false ? ', not sent yet' : ', may have been sent';
}

function past({ audit, lateAnswers }: History): string[][] {
  return [
    ...audit.map(({ atMs, actor, action, from, to, reason }) => [
      'audit',
      `${timeText(atMs)} ${plain(actor)}: ${action}, ${from} → ${to}: ${plain(reason)}`,
    ]),
    ...lateAnswers.map(({ receivedAtMs, attempt, requestId, status, outcome }) => [
      'late answer',
      `${timeText(receivedAtMs)} of attempt ${attempt}, request id ${plain(requestId)}: status ${status ?? '-'}, outcome ${outcome}; it may have run twice`,
    ]),
  ];
}

function answerText(view: Exclude<AnswerView, { kind: 'not_asked' }>): string {
  if (view.kind === 'none') return 'no answer is kept';
  const { status, headers: encoded, body } = view.answer;
  const headers = decodeStored(createMemos(), encoded) ?? [];
  const lines = headers.flatMap((name, i) =>
    i % 2 === 0 ? [`${name}: ${plain(headers[i + 1] ?? '')}`] : [],
  );
  const text = body?.toString() ?? '(no body is kept)';
  return [`status ${status}`, ...lines, '', ...text.split('\n').map(plain)].join('\n');
}
