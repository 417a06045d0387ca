import { hostname, userInfo } from 'node:os';
import { createInterface } from 'node:readline';
import { readDecision } from '../operator/decision.ts';
import { shortId } from '../operator/short-id.ts';
import type { Decision, RecordView } from '../store/operator.ts';
import { fault, flagText, hasFlag, type KeysCall, notDone } from './keys-call.ts';
import { recordTable } from './keys-text.ts';

/** Letters to type: enough to have looked at the id. */
const typedLetters = 8;

/** Who decides, and why. */
export function decisionOf(call: KeysCall): Decision {
  const actor = flagText(call, 'actor') ?? someone();
  const result = readDecision({ actor, reason: flagText(call, 'reason') ?? '' });
  if (result.kind === 'no_reason')
    throw fault(call, `say why: --reason 'what you found out, and where'; it is kept in the audit`);
  if (!hasFlag(call, 'yes') && !call.io.stdin?.isTTY)
    throw fault(call, 'nobody can be asked here, for the input is no terminal; add --yes');
  return result.by;
}

/** In a container the user may have no name. */
function someone(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}@${hostname()}`;
  }
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
