import { changeJson } from '../operator/json-view.ts';
import { carryOut, type Planned, type Refusal } from '../operator/plan.ts';
import { shortId } from '../operator/short-id.ts';
import type { ChangeResult, Decision, OperatorStore, RecordView } from '../store/operator.ts';
import { fault, hasFlag, type KeysCall, notDone, say } from './keys-call.ts';
import { isConfirmed } from './keys-decide.ts';
import { nextText, nextWords, waitText } from './keys-next.ts';
import { planWords } from './keys-plan-words.ts';
import { recordTable } from './keys-text.ts';
import { storeFlags } from './store-flags.ts';

export interface Wanted {
  readonly record: RecordView;
  readonly planned: Planned;
  readonly by: Decision;
}

/** Asks the person, makes the change and says what it came to; to the exit code. */
export async function change(
  call: KeysCall,
  store: OperatorStore,
  { record, planned, by }: Wanted,
): Promise<number> {
  if (planned.kind === 'may_not') return notDone(call, `not done: ${refusalText(call, record, planned.why)}`);
  const { plan } = planned;
  const { question, done } = planWords(plan);
  if (!(await isConfirmed(call, record, question))) return 1;
  return tell(call, record, await carryOut({ store }, plan, by), done);
}

function refusalText(call: KeysCall, record: RecordView, why: Refusal): string {
  const id = shortId(record);
  const asItIs = `${id} is ${record.state}.`;
  switch (why.kind) {
    case 'another_epoch':
      return `--epoch ${why.epoch} is not what ${id} is now, for it ran again or was changed meanwhile. Now it is:\n${nowText(record)}`;
    case 'not_waiting':
      return `${asItIs} ${why.next.map((step) => nextText(nextWords(call, record, step))).join('\n')}`;
    case 'in_progress':
      return `${asItIs} ${waitText(why.wait, record)}`;
    case 'unresolved':
      return `${asItIs} Resolve it first: oncegate keys show ${id}${storeFlags(call.args)} says how.`;
    case 'no_answer':
      return `${asItIs} It keeps no answer, so there is nothing to purge: the next retry runs.`;
    case 'body_too_large':
      throw fault(call, `the body is larger than maxStoredBody of its route, ${why.limitBytes} bytes`);
  }
}

/** Told honestly, to the exit code. `done`: what is so from now on. */
function tell(
  call: KeysCall,
  before: RecordView,
  result: ChangeResult,
  done: (after: RecordView | null) => string,
): number {
  if (hasFlag(call, 'json')) {
    say(call, JSON.stringify(changeJson(before, result)));
    return result.kind === 'done' ? 0 : 1;
  }
  const id = shortId(before);
  switch (result.kind) {
    case 'done':
      say(call, done(result.record));
      return 0;
    case 'refused':
      return notDone(
        call,
        `not done: ${id} was moved by somebody else meanwhile. Now it is:\n${nowText(result.record)}`,
      );
    case 'not_done':
      return notDone(call, `not done: ${result.cause.message}. Nothing was changed.`);
    case 'unconfirmed':
      return notDone(
        call,
        `could not find out whether it was done: ${result.cause.message}. It may still be: run oncegate keys show ${id}${storeFlags(call.args)}`,
      );
  }
}

function nowText(record: RecordView | null): string {
  return record === null ? 'gone: past its retention and deleted' : recordTable([record]);
}
