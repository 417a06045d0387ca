import { readdirSync, readFileSync } from 'node:fs';

/** Elsewhere there is no /proc, and no other way to see what another process has used. */
export const canMeasureCpu = process.platform === 'linux';

/** Linux reports in hundredths of a second on every architecture (USER_HZ), whatever its own clock does. */
const microsecondsPerTick = 10_000;

interface Stat {
  readonly parent: number;
  readonly own: number;
  /** Of children that have ended and were waited for. */
  readonly reaped: number;
}

/** User and system time of all threads of a process, µs. */
export function cpuOf(pid: number): number {
  const stat = readStat(pid);
  if (stat === null) throw new Error(`process ${pid} has ended`);
  return stat.own * microsecondsPerTick;
}

/** The postmaster, every process of the server that lives, and those that have ended, µs. */
export function cpuOfPostgres(postmaster: number): number {
  // A backend that ends between the two looks would be counted twice or not at all.
  for (;;) {
    const before = readStat(postmaster);
    const children = childrenOf(postmaster);
    const after = readStat(postmaster);
    if (before === null || after === null) throw new Error('PostgreSQL has ended');
    if (before.reaped !== after.reaped) continue;
    return (
      children.reduce((sum, { own, reaped }) => sum + own + reaped, after.own + after.reaped) *
      microsecondsPerTick
    );
  }
}

function childrenOf(parent: number): Stat[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readStat(Number(name)))
    .filter((stat) => stat !== null && stat.parent === parent) as Stat[];
}

/** proc_pid_stat(5). null: it has ended. */
function readStat(pid: number): Stat | null {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return null;
  }
  // The second field is the command's name in parentheses, which may hold anything; the third follows the last one.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const field = (number: number): number => Number(fields[number - 3]);
  return { parent: field(4), own: field(14) + field(15), reaped: field(16) + field(17) };
}
