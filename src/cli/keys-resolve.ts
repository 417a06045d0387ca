import { readFileSync } from 'node:fs';
import { givenAnswer } from '../core/given-answer.ts';
import { createMemos } from '../core/memos.ts';
import { type StoredAnswer, waitingStates } from '../core/record.ts';
import { asError } from '../errors.ts';
import { precisionFor } from '../operator/lookup.ts';
import { nextSteps } from '../operator/next-steps.ts';
import { shortId } from '../operator/short-id.ts';
import type { RecordView } from '../store/operator.ts';
import {
  fault,
  flagDurationMs,
  flagNumber,
  flagText,
  hasFlag,
  type KeysCall,
  notDone,
  type Ready,
} from './keys-call.ts';
import { decisionOf, isAnother, isConfirmed, tell } from './keys-decide.ts';
import { finder } from './keys-find.ts';
import { nextText, nextWords } from './keys-next.ts';
import { moment } from './keys-text.ts';

/** Milliseconds. As in the config: an answer that is past its retention at once would be run again. */
const leastRetentionMs = 1_000;

type Resolution =
  | { readonly kind: 'completed'; readonly answer: StoredAnswer }
  | { readonly kind: 'released' };

export function resolveKey(call: KeysCall): Ready {
  const resolution = resolutionOf(call);
  const retention = flagDurationMs(call, 'retention');
  if (retention !== null && retention < leastRetentionMs)
    throw fault(call, '--retention is too short; write at least 1s');
  // Kept for less than the sidecars would, a retry would run again.
  if (resolution.kind === 'completed' && retention === null && !call.settings.knowsRoutes)
    throw fault(
      call,
      "how long answers are kept is in the sidecars' file: give it with --config, or say --retention 7d",
    );
  const by = decisionOf(call);
  // With --yes nobody is shown the record.
  const isChecked = !hasFlag(call, 'yes') || flagText(call, 'epoch') !== null;
  const find = finder(call, precisionFor({ kind: 'resolve', isChecked }));
  return async (store) => {
    const record = await find(store);
    if (record === null || isAnother(call, record)) return 1;
    if (!isWaiting(record))
      return notDone(call, `not done: ${shortId(record)} is ${record.state}. ${adviceOn(call, record)}`);
    const policy = call.settings.policyFor(record.method, record.path);
    const retentionMs = retention ?? policy.retentionMs;
    if (resolution.kind === 'released') {
      if (!(await isConfirmed(call, record, 'It did not run: the next retry with this key runs it.')))
        return 1;
      const result = await store.releaseIfUnchanged(record, by, retentionMs);
      return tell(
        call,
        record,
        result,
        () => `done: ${shortId(record)} is failed_retryable; the next retry runs it`,
      );
    }
    const { answer } = resolution;
    if ((answer.body?.length ?? 0) > policy.maxStoredBodyBytes)
      throw fault(
        call,
        `the body is larger than maxStoredBody of its route, ${policy.maxStoredBodyBytes} bytes`,
      );
    if (
      !(await isConfirmed(
        call,
        record,
        `It ran: every retry gets status ${answer.status} and ${answer.body?.length} bytes.`,
      ))
    )
      return 1;
    const result = await store.completeIfUnchanged(record, by, { answer, retentionMs });
    return tell(
      call,
      record,
      result,
      (after) => `done: ${shortId(record)} is completed; retries get ${answer.status}${keptText(after)}`,
    );
  };
}

function isWaiting({ state }: RecordView): boolean {
  return waitingStates.some((waiting) => waiting === state);
}

function adviceOn(call: KeysCall, record: RecordView): string {
  return nextSteps(call.settings, record)
    .map((step) => nextText(nextWords(call, record, step)))
    .join('\n');
}

function keptText(after: RecordView | null): string {
  return after === null || after.retainUntilMs === null
    ? ''
    : `, until ${moment(after.retainUntilMs, after)}`;
}

const answerFlags = ['status', 'header', 'body', 'body-file'];

function resolutionOf(call: KeysCall): Resolution {
  const [isCompleted, isReleased] = [hasFlag(call, 'completed'), hasFlag(call, 'released')];
  if (isCompleted === isReleased)
    throw fault(call, 'say one: --completed (it ran, here is its answer) or --released (it did not run)');
  if (isReleased) {
    const extra = answerFlags.find((flag) => hasFlag(call, flag));
    if (extra !== undefined)
      throw fault(call, `--${extra} goes with --completed: what did not run has no answer`);
    return { kind: 'released' };
  }
  const status = flagNumber(call, 'status', [200, 599]);
  if (status === null) throw fault(call, '--completed needs the status that retries shall get: --status 201');
  const headers = call.args.lists.get('header') ?? [];
  const given = givenAnswer(createMemos(), { status, headers, body: bodyOf(call) });
  if (given.kind === 'fault') throw fault(call, given.text);
  return { kind: 'completed', answer: given.answer };
}

function bodyOf(call: KeysCall): Buffer {
  const text = flagText(call, 'body');
  const file = flagText(call, 'body-file');
  if (text !== null && file !== null) throw fault(call, 'give --body or --body-file, not both');
  if (file === null) return Buffer.from(text ?? '');
  try {
    return readFileSync(file);
  } catch (error) {
    throw fault(call, `--body-file ${file}: ${asError(error).message}`);
  }
}
