/** The candidate that `word` is most likely a misspelling of, or null if none is near. Letter case does not count. */
export function nearest(word: string, candidates: readonly string[]): string | null {
  // A third of the letters may be wrong: "tmeout" is near "timeout", "key" is not near "log".
  const limit = Math.max(1, Math.floor(word.length / 3));
  let best: string | null = null;
  let bestDistance = limit + 1;
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** `; did you mean x?`, or what could be written where nothing is near. */
export function suggestion(word: string, candidates: readonly string[]): string {
  const guess = nearest(word, candidates);
  return guess === null ? `write one of ${candidates.join(', ')}` : `did you mean ${guess}?`;
}

/** Optimal string alignment: insert, delete, replace, or swap two neighbours. */
function editDistance(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, column) => column)];
  const at = (row: number, column: number): number => rows[row]?.[column] ?? 0;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1];
      let least = Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, at(i - 1, j - 1) + (same ? 0 : 1));
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        least = Math.min(least, at(i - 2, j - 2) + 1);
      row.push(least);
    }
  }
  return at(a.length, b.length);
}
