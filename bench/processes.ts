import { readdirSync, readFileSync } from 'node:fs';

/** Elsewhere there is no /proc, and no other way to see what another process has used. */
export const canMeasureProcesses = process.platform === 'linux';

/** Linux reports in hundredths of a second on every architecture (USER_HZ), whatever its own clock does. */
const microsecondsPerTick = 10_000;

interface Stat {
  readonly pid: number;
  readonly parent: number;
  /** Ticks of all its threads, those that have ended too. */
  readonly own: number;
  /** Ticks of children that have ended and were waited for, and of theirs. */
  readonly reaped: number;
}

/** User and system time of a process and all below it, whether they live or have ended, µs. */
export function cpuOf(root: number): number {
  // A child that ends between the two looks would be counted twice or not at all.
  for (;;) {
    const before = mustRead(root);
    const tree = treeOf(root);
    const after = mustRead(root);
    if (before.reaped !== after.reaped) continue;
    return tree.reduce((sum, { own, reaped }) => sum + own + reaped, 0) * microsecondsPerTick;
  }
}

export interface Memory {
  /** Now, and at most since the start; MB of 1024 × 1024 bytes. */
  readonly residentMb: number;
  readonly peakMb: number;
}

/** Of a process and all that live below it. Pages that they share count for each of them: too much, never too little. */
export function memoryOf(root: number): Memory {
  const sizes = treeOf(root).map(({ pid }) => readStatus(pid));
  const sum = (of: (memory: Memory) => number): number =>
    sizes.reduce((total, memory) => total + of(memory), 0);
  return { residentMb: sum((memory) => memory.residentMb), peakMb: sum((memory) => memory.peakMb) };
}

function mustRead(pid: number): Stat {
  const stat = readStat(pid);
  if (stat === null) throw new Error(`process ${pid} has ended`);
  return stat;
}

/** The process itself comes first. */
function treeOf(root: number): Stat[] {
  const all = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readStat(Number(name)))
    .filter((stat) => stat !== null);
  const below = (parent: number): Stat[] =>
    all.filter((stat) => stat.parent === parent).flatMap((stat) => [stat, ...below(stat.pid)]);
  return [mustRead(root), ...below(root)];
}

/** proc_pid_stat(5). null: it has ended. */
function readStat(pid: number): Stat | null {
  const text = read(pid, 'stat');
  if (text === null) return null;
  // The second field is the command's name in parentheses, which may hold anything; the third follows the last one.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const field = (number: number): number => Number(fields[number - 3]);
  return { pid, parent: field(4), own: field(14) + field(15), reaped: field(16) + field(17) };
}

/** proc_pid_status(5), kB. A process that has ended holds nothing. */
function readStatus(pid: number): Memory {
  const text = read(pid, 'status') ?? '';
  const mb = (name: string): number =>
    Number(new RegExp(`^${name}:\\s*(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0) / 1024;
  return { residentMb: mb('VmRSS'), peakMb: mb('VmHWM') };
}

function read(pid: number, file: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return null;
  }
}
