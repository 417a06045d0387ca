import type { Owner } from './clockwork.ts';

export interface SimEvent {
  atMs: number;
  readonly owner: Owner | null;
  readonly label: string;
  readonly run: () => void;
  /** Of the process itself, on its monotonic clock; else it comes from outside. */
  readonly isTimer: boolean;
  isCancelled: boolean;
  unref(): SimEvent;
  order: number;
}

function itself(this: SimEvent): SimEvent {
  return this;
}

/** A binary heap by time, then by order of arrival. What was cancelled is dropped when its turn comes. */
export class EventQueue {
  #heap: SimEvent[] = [];
  #order = 0;

  push(event: Pick<SimEvent, 'atMs' | 'owner' | 'label' | 'run' | 'isTimer'>): SimEvent {
    const { atMs, owner, label, run, isTimer } = event;
    const whole = { atMs, owner, label, run, isTimer, isCancelled: false, unref: itself, order: 0 };
    this.again(whole, atMs);
    return whole;
  }

  again(event: SimEvent, atMs: number): void {
    event.atMs = atMs;
    event.order = this.#order++;
    this.#heap.push(event);
    this.#rise(this.#heap.length - 1);
  }

  pop(): SimEvent | null {
    for (;;) {
      const top = this.#heap[0];
      if (top === undefined) return null;
      const last = this.#heap.pop() as SimEvent;
      if (last !== top) {
        this.#heap[0] = last;
        this.#sink(0);
      }
      if (!top.isCancelled) return top;
    }
  }

  delay(which: (event: SimEvent) => boolean, ms: number): void {
    for (const event of this.#heap) if (which(event)) event.atMs += ms;
    this.#heap.sort((a, b) => (isBefore(a, b) ? -1 : 1));
  }

  #rise(from: number): void {
    const heap = this.#heap;
    const event = heap[from] as SimEvent;
    let at = from;
    while (at > 0) {
      const up = (at - 1) >> 1;
      const parent = heap[up] as SimEvent;
      if (!isBefore(event, parent)) break;
      heap[at] = parent;
      at = up;
    }
    heap[at] = event;
  }

  #sink(from: number): void {
    const heap = this.#heap;
    const event = heap[from] as SimEvent;
    let at = from;
    for (;;) {
      let down = 2 * at + 1;
      if (down >= heap.length) break;
      if (down + 1 < heap.length && isBefore(heap[down + 1] as SimEvent, heap[down] as SimEvent)) down += 1;
      if (!isBefore(heap[down] as SimEvent, event)) break;
      heap[at] = heap[down] as SimEvent;
      at = down;
    }
    heap[at] = event;
  }
}

function isBefore(a: SimEvent, b: SimEvent): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
