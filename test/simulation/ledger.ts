import { sourcesOf } from '../../src/core/record.ts';
import type { Owner } from './clockwork.ts';
import { frees, type PlannedAnswer } from './planned-answer.ts';
import type { Row } from './sim-row.ts';
import { answerName, type Change, type SimServer } from './sim-server.ts';
import { maxStoredBodyBytes, type Settings } from './world.ts';

/** What really happened to an attempt, seen by nobody but us. */
interface Facts {
  readonly row: Row;
  isSent: boolean;
  /** Under a record that is gone. */
  readonly wasSent: boolean;
  sidecar: Owner | null;
  /** The store has said what became of its settlement. */
  isSettled: boolean;
  answer: PlannedAnswer | null;
  body: string;
  isWhole: boolean;
}

interface Send {
  readonly attempt: string;
  readonly epoch: number;
  readonly body: string;
  readonly sidecar: Owner;
}

/** Broken: the promise, in words. */
export class Violation extends Error {}

/** The truth about sends and records, and what must hold for it at every moment. */
export class Ledger {
  readonly #settings: Settings;
  readonly #saw: (what: string) => void;
  readonly #facts = new Map<string, Facts>();
  readonly #attemptOf = new Map<string, string>();
  readonly #idOf = new Map<string, string>();
  readonly #epochs = new Map<string, number>();
  readonly #sends = new Map<string, number>();
  readonly #frees = new Map<string, number>();
  /** When each send of a record began, by the server's clock; and which of them a run was. */
  readonly #sentAt = new Map<string, number[]>();
  readonly #runOf = new Map<number, { readonly id: string; readonly nth: number }>();
  /** Reservations that their sidecar knows to be durable. */
  readonly acknowledged = new Set<string>();
  /** Stored answers whose key was given away since: past retention, or purged. */
  readonly expired = new Set<string>();
  /** Records whose settlement was lost in a failover: a replica may have its answer in memory still. */
  readonly lossy = new Set<string>();
  /** Calls that have been answered, by request. */
  readonly answered = new Set<string>();
  readonly bodyOf = new Map<string, string>();
  #runs = 0;
  server!: SimServer;
  violation: Violation | null = null;

  constructor(settings: Settings, saw: (what: string) => void) {
    this.#settings = settings;
    this.#saw = saw;
  }

  /** The first one counts. */
  fault(message: string): void {
    this.violation ??= new Violation(message);
  }

  sent({ attempt, epoch, body, sidecar }: Send): void {
    const facts = this.#facts.get(attempt);
    if (facts === undefined) return this.fault('sent, and no reservation of it was ever in the store');
    const { id, requestId } = facts.row;
    const now = this.server.rows.get(id);
    if (facts.isSent || facts.wasSent) this.fault('an attempt was sent twice');
    if (!this.acknowledged.has(attempt)) this.fault('sent before its reservation was acknowledged');
    if (now?.attempt !== attempt) this.fault('sent, though another attempt has the key');
    else if (now.state !== 'in_progress') this.fault(`sent, though its record is ${now.state}`);
    else if (now.dispatched === false) this.fault('sent without its mark');
    else if (now.deadlineMs <= this.server.nowMs) this.fault('sent past its deadline');
    if ((this.server.instances.get(facts.row.instance) ?? 0) <= this.server.nowMs)
      this.fault('sent after its lease was over');
    if (this.answered.has(requestId)) this.fault('sent after its client had been answered');
    if (this.bodyOf.get(requestId) !== body) this.fault('not the body that the client sent');
    if (epoch <= (this.#epochs.get(id) ?? 0)) this.fault('an epoch that is not greater');
    this.#epochs.set(id, epoch);
    facts.isSent = true;
    facts.sidecar = sidecar;
    const sends = (this.#sends.get(id) ?? 0) + 1;
    this.#sends.set(id, sends);
    this.#sentAt.set(id, [...(this.#sentAt.get(id) ?? []), this.server.nowMs]);
    if (sends > 1) this.#saw('sent again after a release');
    if (sends > 1 + (this.#frees.get(id) ?? 0)) this.fault('sent more often than it was freed');
  }

  /** A number that no other answer has, for what an attempt was just sent for. */
  nextRun(attempt: string): number {
    this.#runs += 1;
    const id = this.#facts.get(attempt)?.row.id;
    if (id !== undefined) this.#runOf.set(this.#runs, { id, nth: (this.#sentAt.get(id)?.length ?? 0) - 1 });
    return this.#runs;
  }

  /** When the key ran once more after that run, by the server's clock. */
  outrunAt(run: number): number | null {
    const { id, nth } = this.#runOf.get(run) ?? { id: '', nth: 0 };
    return this.#sentAt.get(id)?.[nth + 1] ?? null;
  }

  head(attempt: string, answer: PlannedAnswer): void {
    (this.#facts.get(attempt) as Facts).answer = answer;
  }

  data(attempt: string, piece: string): void {
    (this.#facts.get(attempt) as Facts).body += piece;
  }

  whole(attempt: string): void {
    (this.#facts.get(attempt) as Facts).isWhole = true;
  }

  isSent(attempt: string): boolean {
    return this.#facts.get(attempt)?.isSent === true;
  }

  settled(attempt: string): void {
    (this.#facts.get(attempt) as Facts).isSettled = true;
  }

  /** What was sent, by a sidecar that lives, and came to nothing that anybody could find. */
  checkEvidence(): void {
    for (const [attempt, { isSent, sidecar, isSettled }] of this.#facts)
      if (isSent && !isSettled && sidecar?.isDead === false && !this.server.lateAnswers.has(attempt))
        this.fault('sent, and no trace of its outcome is kept');
  }

  /** The record of a tenant's key, if there ever was one. */
  idOf(tenant: string, key: string): string | undefined {
    return this.#idOf.get(`${tenant} ${key}`);
  }

  changed({ before, after, by }: Change): void {
    if (after === null) return this.#expired(before as Row, by);
    switch (by) {
      case 'reserve':
      case 'take_over':
        return this.#reserved(before, after);
      case 'settle':
        return this.#settled(before as Row, after);
      case 'release_never_sent':
      case 'release_undispatched':
        this.#saw(by);
        if (this.isSent(after.attempt)) this.fault(`${by}: it was sent`);
        // Under a record that was reaped since, and so the key was free anyway. But its process knows better than to say so.
        if (by === 'release_never_sent' && this.#facts.get(after.attempt)?.wasSent === true)
          this.fault(`${by}: it had been sent`);
        return;
      case 'operator_release':
        this.#saw(by);
        return this.#freed(after.id);
      case 'operator_purge':
        this.#saw(by);
        this.expired.add(answerName(before as Row));
        return this.#freed(after.id);
      case 'sweep':
      case 'operator_complete':
        this.#saw(by);
    }
  }

  /** Acknowledged, and lost in a failover: nobody is promised that answer any more. */
  lost({ before, after, by }: Change): void {
    if (after === null || before === null) return;
    if (after.state === 'completed') this.expired.add(answerName(after));
    if (by === 'settle') this.lossy.add(after.id);
  }

  #reserved(before: Row | null, row: Row): void {
    const { attempt, requestId, tenant, key, id } = row;
    const known = this.#attemptOf.get(requestId);
    if (known !== undefined && known !== attempt) this.fault('two attempts of one request');
    this.#attemptOf.set(requestId, attempt);
    const name = `${tenant} ${key}`;
    if ((this.#idOf.get(name) ?? id) !== id) this.fault('two records of one key');
    for (const [other, otherId] of this.#idOf)
      if (otherId === id && other !== name) this.fault('one record for two tenants');
    this.#idOf.set(name, id);
    const wasSent = this.isSent(attempt);
    // A first try that arrives after its second was done and reaped: the key had been free again.
    if (wasSent && before === null) this.#saw('reserved again after it was reaped');
    // Whatever it still settles is what it got then.
    const got = wasSent ? (this.#facts.get(attempt) as Facts) : { answer: null, body: '', isWhole: false };
    const { answer, body, isWhole } = got;
    const facts = { isSent: false, sidecar: null, isSettled: wasSent, answer, body, isWhole };
    this.#facts.set(attempt, { row, wasSent, ...facts });
    if (before === null) return;
    if (before.state === 'completed') this.#expired(before, 'take_over');
    else this.#saw('take over of a released record');
    if (!sourcesOf('in_progress', 'retry').includes(before.state))
      this.fault(`ran again from ${before.state}`);
  }

  /** The key was given away past its retention. */
  #expired(row: Row, by: string): void {
    this.#saw(by === 'reap' ? 'reaped' : 'take over of an expired record');
    if (row.state !== 'completed' && row.state !== 'failed_retryable') this.fault(`${by} of ${row.state}`);
    if ((row.retainUntilMs ?? Number.POSITIVE_INFINITY) > this.server.nowMs)
      this.fault(`${by} before its time`);
    if (row.state !== 'completed') return;
    if (this.server.nowMs < (row.completedMs as number) + this.#settings.retentionMs)
      this.fault('an answer was not kept for its retention');
    this.expired.add(answerName(row));
    this.#freed(row.id);
  }

  #settled(before: Row, after: Row): void {
    const facts = this.#facts.get(after.attempt) as Facts;
    facts.isSettled = true;
    const isLate = before.state !== 'in_progress';
    const isAnswered = facts.isWhole || facts.body.length > maxStoredBodyBytes;
    if (after.state === 'completed') {
      if (isLate) this.#saw('late answer accepted');
      const isSent = facts.isSent || facts.wasSent;
      if (!isSent || facts.answer === null || !isAnswered) this.fault('completed without an answer');
      else if (after.status !== facts.answer.status) this.fault('completed with another status');
      else if (after.body !== null && after.body.toString() !== facts.body)
        this.fault('completed with another body');
      else if (after.body === null && facts.body.length <= maxStoredBodyBytes)
        this.fault('a body was not kept');
      return;
    }
    const isLarge = facts.body.length > maxStoredBodyBytes;
    const isFreeing = facts.answer !== null && frees(this.#settings.preset, facts.answer);
    if (isLarge && isFreeing && !facts.isWhole) this.#saw('oversized answer that would free its key is cut');
    if (after.state !== 'failed_retryable' || !facts.isSent) return;
    // Also of one too large to keep: its head alone frees nothing.
    if (!facts.isWhole || !isFreeing) this.fault('released, though it was sent and no whole answer frees it');
    this.#saw('released by its answer');
    if (isLarge) this.#saw('released by an oversized answer');
    this.#freed(after.id);
  }

  #freed(id: string): void {
    this.#frees.set(id, (this.#frees.get(id) ?? 0) + 1);
  }
}
