/** For people, in whole units that they can picture: `3.2 ms`, `240 ms`, `12 s`, `3 h`, `9 d`. */
export function roughly(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  const units: readonly (readonly [name: string, sizeMs: number])[] = [
    ['d', 86_400_000],
    ['h', 3_600_000],
    ['min', 60_000],
    ['s', 1_000],
  ];
  // From two of a unit on: 90 s says more than 1 min.
  const [name, sizeMs] = units.find(([, size]) => ms >= 2 * size) ?? ['ms', 1];
  return `${Math.round(ms / sizeMs)} ${name}`;
}
