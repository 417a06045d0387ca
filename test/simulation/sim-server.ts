import { idOf, type RecordId } from '../../src/core/record.ts';
import { passes } from './sim-passes.ts';
import type { Row } from './sim-row.ts';
import { statements } from './sim-statements.ts';
import { SqlError } from './sql-error.ts';

export type SimRows = readonly (readonly unknown[])[];

/** What became of a record, and by which statement. */
export interface Change {
  readonly before: Row | null;
  readonly after: Row | null;
  readonly by: string;
}

export interface SimServerOptions {
  readonly nowMs: () => number;
  /** A synchronous standby: what was not acknowledged may be visible, and be lost in a failover. */
  readonly hasStandby: boolean;
  /** Told of a change that was acknowledged, and lost. */
  readonly onLost?: (change: Change) => void;
  readonly onChange?: (change: Change) => void;
}

interface Undo {
  readonly change: Change;
  readonly undo: () => void;
}

/**
 * What a failover to an asynchronous standby loses, newest first, up to the first of another kind. One that loses a reservation or a
 * mark is outside the promises: its key may run again. What settled a record may be lost, and nothing may run because of it.
 */
const settling = new Set(['settle', 'sweep', 'release_never_sent', 'release_undispatched']);
/** As much as such a failover can lose. */
const maxRecent = 8;

/** The database: what each statement of src/store/postgres/sql does, one at a time, each whole or not at all. */
export class SimServer {
  readonly rows = new Map<string, Row>();
  /** Ends of leases. */
  readonly instances = new Map<string, number>();
  readonly lateAnswers = new Set<string>();
  /** Rows that nobody can write now. */
  readonly blocked = new Set<string>();
  readonly hasStandby: boolean;
  readonly #onChange: (change: Change) => void;
  readonly #onLost: (change: Change) => void;
  readonly #nowMs: () => number;
  #epoch = 0;
  /** What the standby does not have yet, oldest first. */
  #unacknowledged: Undo[] = [];
  /** The newest that were acknowledged, oldest first. */
  #recent: Undo[] = [];
  /** Answers that are durable, by `answerName`. */
  readonly durableAnswers = new Set<string>();
  /** Grows with each failover: a statement sent to the server before is lost. */
  generation = 0;
  #wrote = false;

  constructor({ nowMs, hasStandby, onChange, onLost }: SimServerOptions) {
    this.#nowMs = nowMs;
    this.hasStandby = hasStandby;
    this.#onChange = onChange ?? (() => {});
    this.#onLost = onLost ?? (() => {});
  }

  get nowMs(): number {
    return this.#nowMs();
  }

  /** Runs one statement. Acknowledged: what it wrote, and all that was written before it, survives a failover. */
  execute(label: string, values: readonly unknown[], isAcknowledged: boolean): SimRows {
    const run = statements[label] ?? passes[label];
    if (run === undefined) throw new Error(`no such statement: ${label}`);
    this.#wrote = false;
    const rows = run(this, values);
    // Without a standby what is visible is durable.
    if (this.#wrote && (isAcknowledged || !this.hasStandby)) this.acknowledge();
    return rows;
  }

  acknowledge(): void {
    for (const { change } of this.#unacknowledged) {
      if (change.after?.state === 'completed') this.durableAnswers.add(answerName(change.after));
    }
    this.#recent = [...this.#recent, ...this.#unacknowledged].slice(-maxRecent);
    this.#unacknowledged = [];
  }

  /** The asynchronous standby becomes the server. It lacks at most so many of the newest commits. */
  failOverAsync(most: number): number {
    this.generation += 1;
    let lost = 0;
    for (let one = this.#recent.at(-1); one !== undefined && lost < most; one = this.#recent.at(-1)) {
      if (!settling.has(one.change.by)) break;
      this.#recent.pop();
      one.undo();
      this.#onLost(one.change);
      lost += 1;
    }
    return lost;
  }

  /** The standby becomes the server. */
  failOver(): number {
    this.generation += 1;
    const lost = this.#unacknowledged.reverse();
    this.#unacknowledged = [];
    for (const { undo } of lost) undo();
    return lost.length;
  }

  nextEpoch(): number {
    this.#epoch += 1;
    return this.#epoch;
  }

  rowAt(id: RecordId): Row | undefined {
    return this.rows.get(idOf(id));
  }

  /** Before anything of a statement is written. */
  mustBeFree(id: string): void {
    if (this.blocked.has(id)) throw new SqlError('55P03', 'lock timeout');
  }

  put(id: string, after: Row | null, by: string): void {
    const before = this.rows.get(id) ?? null;
    const change = { before, after, by };
    this.#wrote = true;
    set(this.rows, id, after);
    this.#unacknowledged.push({ change, undo: () => set(this.rows, id, before) });
    this.#onChange(change);
  }

  putLease(instance: string, untilMs: number | null): void {
    const before = this.instances.get(instance) ?? null;
    this.#wrote = true;
    set(this.instances, instance, untilMs);
    const change = { before: null, after: null, by: 'lease' };
    this.#unacknowledged.push({ change, undo: () => set(this.instances, instance, before) });
  }

  keepLateAnswer(name: string): void {
    this.#wrote = true;
    this.lateAnswers.add(name);
  }

  /** An acknowledged write that changes nothing. */
  touch(): void {
    this.#wrote = true;
  }
}

function set<Value>(map: Map<string, Value>, name: string, value: Value | null): void {
  if (value === null) map.delete(name);
  else map.set(name, value);
}

/** Names an answer as it is kept. */
export function answerName({ id, status, body }: Pick<Row, 'id' | 'status' | 'body'>): string {
  return `${id} ${status} ${body?.toString('latin1') ?? ''}`;
}
