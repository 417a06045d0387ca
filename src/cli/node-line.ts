/** End of life of each Node.js line that we run on, as its release schedule has it. Later lines are not known here. */
const endOfLife: Readonly<Record<number, string>> = {
  20: '2026-04-30',
  21: '2024-06-01',
  22: '2027-04-30',
  23: '2025-06-01',
  24: '2028-04-30',
  25: '2026-06-01',
};

/** What to say of a Node.js that gets no security fixes any more, or null. `version` as in process.version. */
export function nodeWarning(version: string, now: Date): string | null {
  const line = Number(/^v(\d+)\./.exec(version)?.[1]);
  const end = endOfLife[line];
  if (end === undefined || now < new Date(end)) return null;
  return `Node.js ${version} gets no security fixes since ${end}; run Oncegate on Node.js 24`;
}
