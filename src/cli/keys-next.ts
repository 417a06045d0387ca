import { duration } from '../config/duration.ts';
import type { NextStep, Wait } from '../operator/next-steps.ts';
import { shortId } from '../operator/short-id.ts';
import type { RecordView } from '../store/operator.ts';
import type { KeysCall } from './keys-call.ts';
import { moment } from './keys-text.ts';
import { storeFlags } from './store-flags.ts';

/** A next step in words, and the commands to type. */
export interface NextWords {
  readonly text: string;
  readonly commands: readonly string[];
}

export function nextWords(call: KeysCall, record: RecordView, step: NextStep): NextWords {
  switch (step.kind) {
    case 'complete': {
      const retention = step.needsRetention ? ' --retention 7d' : '';
      const answer = `--status 201 --header 'Content-Type: application/json' --body-file answer.json${retention}`;
      return {
        text: 'Ask the upstream, by the request id or its own ids. It ran: every retry gets the answer you give:',
        commands: [typed(call, 'resolve', record, `--completed ${answer} --reason 'why'`)],
      };
    }
    case 'release':
      return {
        text: 'It did not run, and no longer can: the next retry runs it:',
        commands: [typed(call, 'resolve', record, `--released --reason 'why'`)],
      };
    case 'purge': {
      const { retainUntilMs } = step;
      const until = retainUntilMs === null ? '' : ` until ${moment(retainUntilMs, record)}`;
      return {
        text: `Retries get the stored answer${until}. To forget it, so that a retry after a minute runs again:`,
        commands: [typed(call, 'purge', record, `--reason 'why'`)],
      };
    }
    case 'wait':
      return { text: waitText(step, record), commands: [] };
    case 'blocked': {
      const until = moment(step.blockedUntilMs, record);
      return { text: `It was purged: retries get 409 until ${until}, then run.`, commands: [] };
    }
    case 'retry':
      return { text: 'There is nothing to do: the next retry runs.', commands: [] };
  }
}

export function nextText({ text, commands }: NextWords): string {
  return [text, ...commands.map((command) => `  ${command}`)].join('\n');
}

export function waitText({ isWorkedOn, deadlineMs, sweepMs }: Wait, record: RecordView): string {
  const limit = `at the latest at its deadline, ${moment(deadlineMs, record)}, plus loops.sweep (${duration.format(sweepMs)})`;
  const who = isWorkedOn
    ? 'It is still being worked on.'
    : 'Its instance has no lease any more: a running sidecar makes it unknown at its next sweep.';
  return `${who} It is settled or becomes unknown ${limit}, as long as a sidecar runs; then look again.`;
}

function typed(call: KeysCall, action: string, record: RecordView, flags: string): string {
  return `oncegate keys ${action} ${shortId(record)} --epoch ${record.epoch}${storeFlags(call.args)} ${flags}`;
}
