import { idOf, type RecordId, type StoredAnswer, type StoredRecord } from '../core/record.ts';
import { elapsedMs, type Moment, now } from '../store/moment.ts';
import type { Look } from '../store/store.ts';

interface Kept {
  readonly record: StoredRecord;
  readonly asked: Moment;
  readonly lifeMs: number;
  readonly bytes: number;
}

/**
 * Milliseconds. A purge blocks its key for longer (store/postgres/sql/operator.ts), so that no replica answers from here once
 * the key may run again.
 */
export const replayLifeMs = 30_000;
/** What an entry costs beside its answer: its key, digests and objects. */
const entryBytes = 1_024;

/**
 * Completed records that were replayed a short while ago: who retries once often retries again. First requests leave nothing
 * here and cost nothing. Completed is final until retention ends, and both that and a purge are waited out: an entry is as old
 * as the moment before the store was asked, by the clock that ran further.
 */
export class ReplayCache {
  readonly #limitBytes: number;
  readonly #now: () => Moment;
  /** Oldest first: all live equally long, but for those whose retention ends sooner. */
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  constructor(limitBytes: number, clock: () => Moment = now) {
    this.#limitBytes = limitBytes;
    this.#now = clock;
  }

  get bytes(): number {
    return this.#bytes;
  }

  find(id: RecordId): StoredRecord | null {
    if (this.#kept.size === 0) return null;
    const name = idOf(id);
    const kept = this.#kept.get(name);
    if (kept === undefined) return null;
    if (this.#isLive(kept)) return kept.record;
    this.#drop(name, kept);
    return null;
  }

  keep(id: RecordId, record: StoredRecord, { asked, retainForMs }: Look): void {
    const { answer, state, expired } = record;
    if (state !== 'completed' || expired || answer === null || answer.body === null) return;
    const bytes = answer.headers.length + answer.body.length + entryBytes;
    if (bytes > this.#limitBytes) return;
    const name = idOf(id);
    const old = this.#kept.get(name);
    if (old !== undefined) this.#drop(name, old);
    const lifeMs = Math.min(replayLifeMs, retainForMs ?? 0);
    this.#kept.set(name, { record: compact(record, answer, answer.body), asked, lifeMs, bytes });
    this.#bytes += bytes;
    for (const [oldest, one] of this.#kept) {
      if (this.#bytes <= this.#limitBytes && this.#isLive(one)) return;
      this.#drop(oldest, one);
    }
  }

  #isLive({ asked, lifeMs }: Kept): boolean {
    return elapsedMs(asked, this.#now()) < lifeMs;
  }

  #drop(name: string, { bytes }: Kept): void {
    this.#kept.delete(name);
    this.#bytes -= bytes;
  }
}

/** One block of its own: a few bytes cut from a larger one, as the driver's are, would keep all of that. */
function compact(record: StoredRecord, answer: StoredAnswer, body: Buffer): StoredRecord {
  const { digest, raw } = record.fingerprint;
  const parts = [digest, raw, answer.headers, body];
  const block = Buffer.allocUnsafeSlow(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  const [ownDigest, ownRaw, headers, ownBody] = parts.map((part) => {
    const from = at;
    at += part.copy(block, at);
    return block.subarray(from, at);
  }) as [Buffer, Buffer, Buffer, Buffer];
  const fingerprint = { ...record.fingerprint, digest: ownDigest, raw: ownRaw };
  return { ...record, fingerprint, answer: { ...answer, headers, body: ownBody } };
}
