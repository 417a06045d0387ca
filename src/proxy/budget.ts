/** Of the whole: what new requests may fill. The rest is for the answers of those that run. */
const newcomersPart = 0.75;
/**
 * An address may hold so many times what is still free: alone three quarters, as behind a gateway, where all clients have one
 * address; and whatever some hold, something is left for one that holds nothing.
 */
const shareOfFree = 3;
/** Milliseconds without taking a byte after which an answer may be given up for a new request. */
const idleMs = 1_000;

/** An answer on its way from the upstream that has to be kept until the store has it. */
interface Arriving {
  goOn(): void;
}

/** An answer that is settled, or never will be kept: its client may be cut for want of memory. */
interface Leaving {
  readonly address: string;
  readonly tookAtMs: number;
  drop(): void;
}

/**
 * Bytes of requests and answers that this process holds in memory. While it is spent new requests are refused, nothing more is
 * sent to an upstream, answers on their way wait in their upstreams' sockets, all but one, so that one always ends; and clients
 * that do not take their answer are cut. Hence no more is held than the limit, one answer and a chunk for each connection to an
 * upstream.
 */
export class Budget {
  readonly #limitBytes: number;
  readonly #newLimitBytes: number;
  #heldBytes = 0;
  readonly #byAddress = new Map<string, number>();
  /** Who has taken nothing for the longest comes first. */
  readonly #leaving = new Set<Leaving>();
  /** Oldest first. */
  readonly #waiting = new Set<Arriving>();
  /** The one that goes on while nothing is left. */
  #first: Arriving | null = null;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
    this.#newLimitBytes = limitBytes * newcomersPart;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** The largest body that an address may bring while nothing else is held. */
  get largestBytes(): number {
    return (this.#newLimitBytes * shareOfFree) / (1 + shareOfFree);
  }

  /** Whether an upstream may be asked for one more answer. */
  get hasRoom(): boolean {
    this.squeeze();
    return this.#heldBytes <= this.#limitBytes;
  }

  /** For a new request: false when there is no room for it, or when its address has its share. */
  tryTake(bytes: number, address: string): boolean {
    this.#makeRoom(this.#newLimitBytes - bytes, idleMs);
    if (!this.#hasShare(bytes, address)) this.#makeShare(bytes, address);
    if (!this.#hasShare(bytes, address)) return false;
    if (bytes > 0) this.take(bytes, address);
    return true;
  }

  #hasShare(bytes: number, address: string): boolean {
    const freeBytes = this.#newLimitBytes - this.#heldBytes - bytes;
    const itsBytes = (this.#byAddress.get(address) ?? 0) + bytes;
    return freeBytes >= 0 && itsBytes <= shareOfFree * freeBytes;
  }

  /** Of what its own clients do not take. */
  #makeShare(bytes: number, address: string): void {
    const nowMs = performance.now();
    for (const answer of this.#leaving) {
      if (nowMs - answer.tookAtMs < idleMs) return;
      if (answer.address !== address) continue;
      this.#leaving.delete(answer);
      answer.drop();
      if (this.#hasShare(bytes, address)) return;
    }
  }

  /** For what runs already. */
  take(bytes: number, address: string): void {
    this.#heldBytes += bytes;
    this.#byAddress.set(address, (this.#byAddress.get(address) ?? 0) + bytes);
  }

  give(bytes: number, address: string): void {
    const itsBytes = (this.#byAddress.get(address) ?? 0) - bytes;
    if (itsBytes > 0) this.#byAddress.set(address, itsBytes);
    else this.#byAddress.delete(address);
    this.#giveBack(bytes);
  }

  /** false: read no more of it until `goOn()`. */
  arrive(answer: Arriving, bytes: number): boolean {
    this.#heldBytes += bytes;
    if (this.hasRoom) return true;
    this.#first ??= answer;
    if (this.#first === answer) return true;
    this.#waiting.add(answer);
    return false;
  }

  /** The store has it, or never will. */
  arrived(answer: Arriving, bytes: number): void {
    this.#waiting.delete(answer);
    if (this.#first === answer) this.#first = null;
    this.#giveBack(bytes);
  }

  /** It waits for its client; called again whenever that has taken something. */
  leave(answer: Leaving): void {
    this.#leaving.delete(answer);
    this.#leaving.add(answer);
  }

  /** Drops what leaves, as far as more is held than may be. */
  squeeze(): void {
    this.#makeRoom(this.#limitBytes, 0);
  }

  left(answer: Leaving): void {
    this.#leaving.delete(answer);
  }

  #giveBack(bytes: number): void {
    this.#heldBytes -= bytes;
    if (this.#waiting.size > 0) this.#wake();
  }

  #wake(): void {
    if (this.#heldBytes <= this.#limitBytes) {
      const all = [...this.#waiting];
      this.#waiting.clear();
      for (const answer of all) answer.goOn();
      return;
    }
    if (this.#first !== null) return;
    for (const oldest of this.#waiting) {
      this.#waiting.delete(oldest);
      this.#first = oldest;
      return oldest.goOn();
    }
  }

  #makeRoom(toBytes: number, idleForMs: number): void {
    if (this.#heldBytes <= toBytes) return;
    const nowMs = performance.now();
    for (const answer of this.#leaving) {
      if (this.#heldBytes <= toBytes || nowMs - answer.tookAtMs < idleForMs) return;
      this.#leaving.delete(answer);
      answer.drop();
    }
  }
}
