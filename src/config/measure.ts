/** A whole number and a unit, as in `30s` or `1mb`: what durations and sizes have in common. */
export interface Measure {
  /** Of the exact spelling; also the JSON Schema's. */
  readonly pattern: RegExp;
  /** In the smallest unit. `text` matches `pattern`. */
  parse(text: string): number;
  /** The shortest exact spelling. */
  format(value: number): string;
  /** How a value is called that is out of bounds. */
  readonly tooLittle: string;
  readonly tooMuch: string;
  /** What is wrong with a value and what to write instead. */
  fault(input: unknown): string;
}

interface Kind {
  readonly name: string;
  readonly example: string;
  readonly tooLittle: string;
  readonly tooMuch: string;
  /** From small to large; the first is 1. */
  readonly units: Readonly<Record<string, number>>;
  /** Other people's spellings, understood only to suggest ours. */
  readonly aliases: Readonly<Record<string, string>>;
  /** The unit that a number without one most likely meant. */
  readonly likelyUnit: (bare: number) => string;
}

export function measure(kind: Kind): Measure {
  const units = Object.entries(kind.units);
  const names = units.map(([name]) => name);
  const pattern = new RegExp(`^\\d{1,12}(${names.join('|')})$`);
  const howTo = `write a whole number and one of ${names.join(', ')}, for instance ${kind.example}`;

  function format(value: number): string {
    const [name, size] =
      units.findLast(([, unit]) => value % unit === 0 && value >= unit) ?? (units[0] as [string, number]);
    return `${value / size}${name}`;
  }

  function unitOf(spelling: string): number | undefined {
    const lower = spelling.toLowerCase();
    return kind.units[lower] ?? kind.units[kind.aliases[lower] ?? ''];
  }

  /** The value that a near miss such as `1.5h`, `1h30m` or `30 seconds` meant, or null. */
  function guess(text: string): number | null {
    if (!/^\s*(\d+(\.\d+)?\s*[a-z]+\s*)+$/i.test(text)) return null;
    let total = 0;
    for (const [, amount, spelling] of text.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/gi)) {
      total += Number(amount) * (unitOf(spelling ?? '') ?? Number.NaN);
    }
    return Number.isInteger(total) ? total : null;
  }

  function fault(input: unknown): string {
    if (typeof input === 'number' || (typeof input === 'string' && /^\d+$/.test(input))) {
      const bare = Number(input);
      return Number.isInteger(bare) && bare >= 0
        ? `has no unit; write ${bare}${kind.likelyUnit(bare)}`
        : `is not a ${kind.name}; ${howTo}`;
    }
    if (input === null) return `is empty; ${howTo}`;
    const meant = typeof input === 'string' ? guess(input) : null;
    return `is not a ${kind.name}; ${meant === null ? howTo : `write ${format(meant)}`}`;
  }

  function parse(text: string): number {
    const digits = Number.parseInt(text, 10);
    return digits * (kind.units[text.slice(text.search(/[a-z]/))] ?? Number.NaN);
  }

  return { pattern, parse, format, fault, tooLittle: kind.tooLittle, tooMuch: kind.tooMuch };
}
