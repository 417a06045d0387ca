import { asError, OncegateError } from '../errors.ts';
import { type Finding, failure, ok, warning } from './check.ts';

/** What loading it threw: the first line says how many faults, each of the others what to write. */
export function judgeFault(thrown: unknown): Finding {
  const [text = '', ...faults] = asError(thrown).message.split('\n');
  const code = thrown instanceof OncegateError ? thrown.code : 'config_invalid';
  return failure(text, faults.join('\n') || 'oncegate help serve says how', code);
}

/** Warnings of ours say what is wrong; then, after a semicolon, what to write. */
export function judgeWarning(text: string): Finding {
  const cut = text.lastIndexOf('; ');
  return cut === -1
    ? warning(text, 'serve starts all the same: change it, or leave it if it is meant')
    : warning(text.slice(0, cut), text.slice(cut + 2));
}

export function judgeNode(version: string, fault: string | null): Finding {
  return fault === null ? ok(`Node.js ${version}`) : judgeWarning(fault);
}
