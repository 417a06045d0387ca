import { duration } from '../config/duration.ts';
import type { RecordView } from '../store/operator.ts';
import { configFile } from './config-file.ts';
import type { KeysCall } from './keys-call.ts';
import { moment, shortId } from './keys-text.ts';
import { storeFlags } from './store-flags.ts';

/** What may be done about a record: in words, and the commands to type. */
export interface Next {
  readonly text: string;
  readonly commands: readonly string[];
}

export function nextSteps(call: KeysCall, record: RecordView): readonly Next[] {
  const { state, retainUntilMs, blockedUntilMs, seenAtMs } = record;
  const until = retainUntilMs === null ? '' : ` until ${moment(retainUntilMs, record)}`;
  switch (state) {
    case 'unknown':
    case 'dead_letter':
      return resolutions(call, record);
    case 'in_progress':
      return [{ text: whenUnknown(call, record), commands: [] }];
    case 'completed':
      return [
        {
          text: `Retries get the stored answer${until}. To forget it, so that a retry after a minute runs again:`,
          commands: [typed(call, 'purge', record, `--reason 'why'`)],
        },
      ];
    case 'failed_retryable':
      if (blockedUntilMs !== null && blockedUntilMs > seenAtMs)
        return [
          {
            text: `It was purged: retries get 409 until ${moment(blockedUntilMs, record)}, then run.`,
            commands: [],
          },
        ];
      return [{ text: 'There is nothing to do: the next retry runs.', commands: [] }];
  }
}

/** An attempt in progress may be about to settle its record: nobody else may. */
export function whenUnknown(call: KeysCall, record: RecordView): string {
  const { sweepMs } = call.config.loops;
  const limit = `at the latest at its deadline, ${moment(record.deadlineMs, record)}, plus loops.sweep (${duration.format(sweepMs)})`;
  const who = record.instanceAlive
    ? 'It is still being worked on.'
    : 'Its instance has no lease any more: a running sidecar makes it unknown at its next sweep.';
  return `${who} It is settled or becomes unknown ${limit}, as long as a sidecar runs; then look again.`;
}

function resolutions(call: KeysCall, record: RecordView): readonly Next[] {
  const retention = configFile(call.args, call.io).file === undefined ? ' --retention 7d' : '';
  const answer = `--status 201 --header 'Content-Type: application/json' --body-file answer.json${retention}`;
  return [
    {
      text: 'Ask the upstream, by the request id or its own ids. It ran: every retry gets the answer you give:',
      commands: [typed(call, 'resolve', record, `--completed ${answer} --reason 'why'`)],
    },
    {
      text: 'It did not run, and no longer can: the next retry runs it:',
      commands: [typed(call, 'resolve', record, `--released --reason 'why'`)],
    },
  ];
}

function typed(call: KeysCall, action: string, record: RecordView, flags: string): string {
  return `oncegate keys ${action} ${shortId(record)} --epoch ${record.epoch}${storeFlags(call.args)} ${flags}`;
}
