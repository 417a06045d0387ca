import { parse } from 'yaml';
import { type Path, pathText } from './fault.ts';

export interface Interpolation {
  /** Paths whose variables are missing or misspelt: nothing else is said about these. */
  readonly faulty: Map<string, { readonly path: Path; readonly text: string; readonly unset?: string }>;
  /** Names that the file refers to. */
  readonly used: ReadonlySet<string>;
}

interface Options {
  readonly env: NodeJS.ProcessEnv;
  /** Values that came from the environment or a flag are taken as they are. */
  readonly skips: (path: Path) => boolean;
  readonly isUnquoted: (path: Path) => boolean;
}

/**
 * Fills in `${NAME}` and `${NAME:-default}` (unset or empty), in place; `$${` is a literal `${`. After YAML has been read, so
 * that a variable can never add fields. An unquoted value is then read again as YAML reads a scalar: `poolSize: ${SIZE}`.
 */
export function interpolate(tree: Record<string, unknown>, options: Options): Interpolation {
  const faulty: Interpolation['faulty'] = new Map();
  const used = new Set<string>();

  function fill(text: string, path: Path): string {
    return text.replaceAll(/\$(\$?)\{([^}]*)\}/g, (whole, escape: string, inside: string) => {
      if (escape !== '') return whole.slice(1);
      const [, name, fallback] = /^([A-Za-z_]\w*)(?::-(.*))?$/s.exec(inside) ?? [];
      if (name === undefined) {
        faulty.set(pathText(path), {
          path,
          text: `${whole} names no variable; write \${NAME} or \${NAME:-default}, or $$\{ for a literal $\{`,
        });
        return '';
      }
      used.add(name);
      const value = options.env[name];
      if (fallback !== undefined) return value === undefined || value === '' ? fallback : value;
      if (value === undefined) {
        faulty.set(pathText(path), {
          path,
          text: `the variable ${name} is not set; set it, or write \${${name}:-default}`,
          unset: name,
        });
      }
      return value ?? '';
    });
  }

  function visit(value: unknown, path: Path): unknown {
    if (options.skips(path)) return value;
    if (typeof value === 'string' && value.includes('${')) {
      const filled = fill(value, path);
      return options.isUnquoted(path) ? scalar(filled) : filled;
    }
    if (Array.isArray(value)) return value.map((item, i) => visit(item, [...path, i]));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [name, visit(member, [...path, name])]),
    );
  }

  for (const [name, value] of Object.entries(tree)) tree[name] = visit(value, [name]);
  return { faulty, used };
}

/** Numbers and booleans as YAML spells them; everything else stays text. */
function scalar(text: string): unknown {
  return /^(-?\d+(\.\d+)?|true|false)$/.test(text) ? parse(text) : text;
}
