import { defaultStallMs } from './untaken.ts';

/** How long a client may hold its answer up, in milliseconds; then the rest is read and thrown away. */
export interface Patience {
  /** Without taking a byte. */
  readonly stallMs: number;
  /** In all. The upstream's connection serves nobody else meanwhile, and slow clients could hold up every one of them. */
  readonly heldMs: number;
  /**
   * The same where the record waits for the answer's end. The upstream keeps its own time in full: so this is the most by which a
   * client delays the settlement, and less than the attempt's deadline leaves beyond that time (10 s, reserve.ts).
   */
  readonly heldUnsettledMs: number;
}

export const usualPatience: Patience = { stallMs: defaultStallMs, heldMs: 300_000, heldUnsettledMs: 5_000 };

/** Counts how long an upstream is held up in all, and says when that is too long. */
export class HeldUp {
  readonly #onOver: () => void;
  #leftMs: number;
  /** null: it is not, just now. */
  #sinceMs: number | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor(maxMs: number, onOver: () => void) {
    this.#leftMs = maxMs;
    this.#onOver = onOver;
  }

  get isCounting(): boolean {
    return this.#sinceMs !== null;
  }

  /** May be called while it counts already. */
  begin(): void {
    if (this.#sinceMs !== null) return;
    this.#sinceMs = performance.now();
    this.#timer = setTimeout(this.#onOver, this.#leftMs);
  }

  end(): void {
    if (this.#sinceMs === null) return;
    clearTimeout(this.#timer);
    this.#leftMs = Math.max(0, this.#leftMs - (performance.now() - this.#sinceMs));
    this.#sinceMs = null;
  }

  atMost(ms: number): void {
    const { isCounting } = this;
    this.end();
    this.#leftMs = Math.min(this.#leftMs, ms);
    if (isCounting) this.begin();
  }
}
