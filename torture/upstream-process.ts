import { fork } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { Teardown } from '../test/helpers/postgres.ts';
import type { Start } from './facts.ts';
import type { Line } from './upstream.ts';

/** The upstream, and its log as it stands on disk. */
export class UpstreamProcess {
  readonly port: number;
  readonly #send: (call: string) => void;
  readonly #log: number;
  #readTo: number;
  #tail = '';
  readonly #byRun = new Map<number, Line[]>();
  readonly #over = new Set<number>();
  /** Starts of runs that were over: nobody asked for them any more. */
  readonly late: Line[] = [];

  private constructor(port: number, file: string, send: (call: string) => void) {
    this.port = port;
    this.#send = send;
    this.#log = openSync(file, 'r');
    this.#readTo = fstatSync(this.#log).size;
  }

  static async start(t: Teardown, file: string): Promise<UpstreamProcess> {
    closeSync(openSync(file, 'a'));
    const script = join(import.meta.dirname, 'upstream.ts');
    // In a group of its own: Ctrl-C must not reach it before the sidecars.
    const child = fork(script, [file], { execArgv: ['--import=tsx'], detached: true });
    const exited = once(child, 'exit');
    t.teardown(async () => {
      child.kill('SIGKILL');
      await exited;
    });
    const [{ port }] = (await once(child, 'message')) as [{ port: number }];
    return new UpstreamProcess(port, file, (call) => void child.send(call));
  }

  /** Lets it go on with what it holds for this call. */
  release(call: string): void {
    this.#send(call);
  }

  /** Of one run, with what was answered. */
  startsOf(run: number): Start[] {
    this.readOn();
    const lines = this.#byRun.get(run) ?? [];
    return lines.flatMap((line): Start[] => {
      if (line.what !== 'start') return [];
      const { what: _, ...start } = line;
      const answer = lines.find((other) => other.what === 'answer' && other.start === line.start);
      if (answer?.what !== 'answer') return [{ ...start, answer: null }];
      const { at, status, digest, token } = answer;
      return [{ ...start, answer: { at, status, digest, token } }];
    });
  }

  /** It was checked: whatever starts for it from now on starts too late. */
  close(run: number): void {
    this.readOn();
    this.#byRun.delete(run);
    this.#over.add(run);
  }

  readOn(): void {
    const chunk = Buffer.alloc(262_144);
    for (;;) {
      const bytes = readSync(this.#log, chunk, 0, chunk.length, this.#readTo);
      if (bytes === 0) return;
      this.#readTo += bytes;
      // ASCII only: nothing can be cut in the middle of a letter.
      const lines = (this.#tail + chunk.toString('latin1', 0, bytes)).split('\n');
      this.#tail = lines.pop() ?? '';
      for (const text of lines) {
        const line = JSON.parse(text) as Line;
        if (!this.#over.has(line.run))
          this.#byRun.set(line.run, [...(this.#byRun.get(line.run) ?? []), line]);
        else if (line.what === 'start') this.late.push(line);
      }
    }
  }
}
