import { readFileSync } from 'node:fs';
import { duration } from '../config/duration.ts';
import { givenAnswer } from '../core/given-answer.ts';
import { createMemos } from '../core/memos.ts';
import { asError } from '../errors.ts';
import { precisionFor } from '../operator/lookup.ts';
import { planResolve, type Resolution } from '../operator/resolve.ts';
import { type Retention, readRetention } from '../operator/retention.ts';
import {
  fault,
  flagDurationMs,
  flagNumber,
  flagText,
  hasFlag,
  type KeysCall,
  type Ready,
} from './keys-call.ts';
import { change } from './keys-change.ts';
import { decisionOf } from './keys-decide.ts';
import { finder } from './keys-find.ts';

export function resolveKey(call: KeysCall): Ready {
  const { settings } = call;
  const resolution = resolutionOf(call);
  const retention = retentionOf(call, resolution);
  const by = decisionOf(call);
  const epoch = flagText(call, 'epoch');
  // With --yes nobody is shown the record.
  const isChecked = !hasFlag(call, 'yes') || epoch !== null;
  const find = finder(call, precisionFor({ kind: 'resolve', isChecked }));
  return async (store) => {
    const record = await find(store);
    if (record === null) return 1;
    const planned = planResolve(settings, record, { resolution, retention, epoch });
    return await change(call, store, { record, planned, by });
  };
}

function retentionOf(call: KeysCall, resolution: Resolution): Retention {
  const result = readRetention(call.settings, resolution.kind, flagDurationMs(call, 'retention'));
  switch (result.kind) {
    case 'retention':
      return result.retention;
    case 'too_short':
      throw fault(call, `--retention is too short; write at least ${duration.format(result.leastMs)}`);
    case 'missing':
      throw fault(
        call,
        "how long answers are kept is in the sidecars' file: give it with --config, or say --retention 7d",
      );
  }
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
    return { kind: 'release' };
  }
  const status = flagNumber(call, 'status', [200, 599]);
  if (status === null) throw fault(call, '--completed needs the status that retries shall get: --status 201');
  const headers = call.args.lists.get('header') ?? [];
  const given = givenAnswer(createMemos(), { status, headers, body: bodyOf(call) });
  if (given.kind === 'fault') throw fault(call, given.text);
  return { kind: 'complete', answer: given.answer };
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
