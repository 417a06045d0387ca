import { OncegateError } from '../errors.ts';

export type Path = readonly PropertyKey[];

/** One thing that is wrong with a configuration. */
export interface Fault {
  /** `file:line:column`, or the name of the variable or flag. */
  readonly where: string;
  /** Offset in the file, to list faults from top to bottom. */
  readonly offset: number;
  readonly path: Path;
  /** What is wrong; what to write instead. */
  readonly text: string;
}

/** `routes[0].outcomes.409` */
export function pathText(path: Path): string {
  return path
    .map((step, i) => (typeof step === 'number' ? `[${step}]` : `${i === 0 ? '' : '.'}${String(step)}`))
    .join('');
}

/** From top to bottom of the file, then what variables and flags said. */
export function faultLines(faults: readonly Fault[]): string[] {
  return faults
    .toSorted((a, b) => a.offset - b.offset)
    .map(({ where, path, text }) => [where, ...(path.length === 0 ? [] : [pathText(path)]), text].join(': '));
}

export function faultsError(faults: readonly Fault[]): OncegateError {
  const lines = faultLines(faults);
  const count = lines.length === 1 ? 'a fault' : `${lines.length} faults`;
  return new OncegateError('config_invalid', [`the configuration has ${count}`, ...lines].join('\n'));
}
