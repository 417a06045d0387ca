import { hostname, userInfo } from 'node:os';
import { createInterface } from 'node:readline';
import { recordJson } from '../operator/json-view.ts';
import { shortId } from '../operator/short-id.ts';
import type { ChangeResult, Decision, RecordView } from '../store/operator.ts';
import { fault, flagText, hasFlag, type KeysCall, notDone, say } from './keys-call.ts';
import { recordTable } from './keys-text.ts';
import { storeFlags } from './store-flags.ts';

/** Letters to type: enough to have looked at the id. */
const typedLetters = 8;

/** Who decides, and why. */
export function decisionOf(call: KeysCall): Decision {
  const reason = flagText(call, 'reason')?.trim() ?? '';
  if (reason === '')
    throw fault(call, `say why: --reason 'what you found out, and where'; it is kept in the audit`);
  if (!hasFlag(call, 'yes') && !call.io.stdin?.isTTY)
    throw fault(call, 'nobody can be asked here, for the input is no terminal; add --yes');
  return { actor: flagText(call, 'actor') ?? someone(), reason };
}

/** In a container the user may have no name. */
function someone(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}@${hostname()}`;
  }
}

/** true: it has run again since the person looked, and what they found out is about another attempt; it was told. */
export function isAnother(call: KeysCall, record: RecordView): boolean {
  const epoch = flagText(call, 'epoch');
  if (epoch === null || epoch === record.epoch) return false;
  const id = shortId(record);
  notDone(
    call,
    `not done: --epoch ${epoch} is not what ${id} is now, for it ran again or was changed meanwhile. Now it is:\n${nowText(record)}`,
  );
  return true;
}

/** false: the person would rather not; it was told. */
export async function isConfirmed(call: KeysCall, record: RecordView, what: string): Promise<boolean> {
  if (hasFlag(call, 'yes')) return true;
  const { stdin, stderr } = call.io;
  const id = shortId(record);
  stderr.write(
    `${recordTable([record])}\n${what}\nType the first ${typedLetters} letters of the id to go on: `,
  );
  const typed = await nextLine(stdin as NodeJS.ReadableStream);
  if (typed?.trim().toLowerCase() === id.slice(0, typedLetters)) return true;
  notDone(call, 'not done: that is not its id');
  return false;
}

/** null: the input ended. */
function nextLine(input: NodeJS.ReadableStream): Promise<string | null> {
  return new Promise((resolve) => {
    const lines = createInterface({ input });
    lines.once('line', (line) => {
      resolve(line);
      lines.close();
    });
    lines.once('close', () => resolve(null));
  });
}

/** Told honestly, to the exit code. `done`: what is so from now on. */
export function tell(
  call: KeysCall,
  before: RecordView,
  result: ChangeResult,
  done: (after: RecordView | null) => string,
): number {
  const id = shortId(before);
  if (hasFlag(call, 'json')) {
    const now = 'record' in result && result.record !== null ? recordJson(result.record) : null;
    const error = 'cause' in result ? result.cause.message : undefined;
    say(call, JSON.stringify({ result: result.kind, id, now, error }));
    return result.kind === 'done' ? 0 : 1;
  }
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
