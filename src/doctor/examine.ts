import { asError, OncegateError } from '../errors.ts';
import { blocking, type Check, type Finding, failure, type Group, skipped } from './check.ts';

/** One thing to look at. `C` is what all steps of a group share: a connection, the config. */
export interface Step<C> {
  readonly name: string;
  /** Earlier steps without which this one has nothing to look at. */
  readonly needs: readonly string[];
  readonly look: (context: C) => Promise<Finding>;
}

/**
 * In order; a step whose ground is missing is not taken, and says which earlier one is to blame. A look that throws an
 * error of ours found the whole ground gone.
 */
export async function* examine<C>(
  group: Group,
  steps: readonly Step<C>[],
  context: C,
): AsyncGenerator<Check> {
  /** The step at the root of it, by the name of each that did not hold. */
  const blame = new Map<string, string>();
  let lost: string | undefined;
  for (const { name, needs, look } of steps) {
    const root = lost ?? needs.map((need) => blame.get(need)).find((blamed) => blamed !== undefined);
    let finding: Finding;
    try {
      finding = root === undefined ? await look(context) : skippedFor(root);
    } catch (error) {
      if (error instanceof OncegateError) lost = name;
      finding = thrownBy(error);
    }
    if (blocks(finding)) blame.set(name, root ?? name);
    yield { group, name, ...finding };
  }
}

/** All of them, where already the ground is missing. */
export function* skipAll(group: Group, steps: readonly Step<never>[], root: string): Generator<Check> {
  for (const { name } of steps) yield { group, name, ...skippedFor(root) };
}

function skippedFor(root: string): Finding {
  return skipped(`not looked at, because of ${root}`);
}

function thrownBy(error: unknown): Finding {
  const text = `check failed: ${asError(error).message}`;
  const advice = 'run oncegate doctor again; if it stays so, look into the log of PostgreSQL';
  return error instanceof OncegateError ? failure(text, advice, error.code) : blocking(text, advice);
}

function blocks(finding: Finding): boolean {
  if (finding.level === 'warning') return finding.blocks === true;
  return finding.level !== 'ok';
}
