import { readFileSync } from 'node:fs';

/** proc_pid_status(5), of a process that lives. */
function megabytes(pid: number, field: string): number {
  const text = readFileSync(`/proc/${pid}/status`, 'latin1');
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1]) / 1024;
}

export const residentMb = (pid: number): number => megabytes(pid, 'VmRSS');

/** The most it ever was. */
export const peakMb = (pid: number): number => megabytes(pid, 'VmHWM');
