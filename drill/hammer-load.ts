/** The clients of `hammer`, in a process of their own. The first message is the order; each is answered with the state. */
import { requestOf, type Told, wordOf } from './callers.ts';
import { Line } from './hammer-line.ts';
import { type Burst, Plan } from './hammer-plan.ts';
import { type Hammered, type Passage, Tally } from './hammer-tally.ts';

export interface Order {
  readonly urls: readonly string[];
  readonly requests: number;
  readonly seed: number;
  readonly connectionsEach: number;
}

/** Milliseconds before whoever was refused asks again, and for how long it does. */
const pauseMs = 50;
const patienceMs = 30_000;
/** A call that was told one of these asks again. */
const retried = new Set(['in_progress', 'store_unavailable', 'answer_unsaved', 'overloaded']);

/** Calls that ended without an answer: then no new burst is begun, for it is broken already and each takes its time. */
const mostUnanswered = 100;

class Hammer {
  readonly #plan: Plan;
  readonly #tally: Tally;
  readonly #order: Order;
  /** By replica. Whoever was free longest goes first: a connection left idle would be closed. */
  readonly #free: Line[][];
  readonly #startedMs = performance.now();
  #next: Burst | null = null;
  #underWay = 0;
  #endedMs: number | null = null;
  #error: Error | null = null;

  constructor(order: Order) {
    this.#order = order;
    this.#plan = new Plan(order.seed, order.requests, order.urls.length);
    this.#tally = new Tally(order.requests);
    this.#free = order.urls.map(() => []);
  }

  async start(): Promise<void> {
    const broken = (error: Error) => void (this.#error ??= error);
    for (const [replica, url] of this.#order.urls.entries())
      for (let i = 0; i < this.#order.connectionsEach; i += 1)
        this.#free[replica]?.push(await Line.open(replica, url, broken));
    this.#next = this.#plan.next();
    this.#fill();
  }

  state(): Hammered {
    return this.#tally.result({
      isDone: this.#endedMs !== null,
      error: this.#error?.message ?? null,
      seconds: ((this.#endedMs ?? performance.now()) - this.#startedMs) / 1_000,
      keys: this.#plan.keys,
    });
  }

  /** As many bursts as there are free connections for, each whole. */
  #fill(): void {
    while (this.#next !== null && this.#hasRoom(this.#next)) {
      this.#play(this.#next);
      this.#next = this.#tally.unanswered > mostUnanswered ? null : this.#plan.next();
    }
    if (this.#next === null && this.#underWay === 0) this.#endedMs ??= performance.now();
  }

  #hasRoom({ replicas }: Burst): boolean {
    const wanted = this.#free.map(() => 0);
    for (const replica of replicas) wanted[replica] = (wanted[replica] ?? 0) + 1;
    return this.#free.every((lines, replica) => lines.length >= (wanted[replica] ?? 0));
  }

  #play(burst: Burst): void {
    const nowMs = performance.now();
    const passage = { burst, firstMs: nowMs, lastMs: nowMs, left: burst.replicas.length };
    const counted: Passage = { ...passage, inFlight: 0, mostInFlight: 0 };
    const request = requestOf(burst.key);
    this.#underWay += 1;
    for (const [i, replica] of burst.replicas.entries()) {
      const line = this.#free[replica]?.shift() as Line;
      const afterMs = i % (burst.spreadMs + 1);
      if (afterMs === 0) this.#send(counted, line, request);
      else setTimeout(() => this.#send(counted, line, request), afterMs);
    }
  }

  #send(passage: Passage, line: Line, request: string): void {
    const sentMs = performance.now();
    passage.lastMs = Math.max(passage.lastMs, sentMs);
    passage.inFlight += 1;
    passage.mostInFlight = Math.max(passage.mostInFlight, passage.inFlight);
    const answered = (told: Told): void => {
      const ms = performance.now() - sentMs;
      if (retried.has(wordOf(told)) && ms < patienceMs) {
        this.#tally.refused(told);
        setTimeout(() => line.send(request, answered), pauseMs);
        return;
      }
      this.#tally.ended(passage.burst, told, ms);
      passage.inFlight -= 1;
      passage.left -= 1;
      this.#free[line.replica]?.push(line);
      if (passage.left === 0) this.#over(passage);
      this.#fill();
    };
    line.send(request, answered);
  }

  #over(passage: Passage): void {
    this.#tally.over(passage);
    this.#underWay -= 1;
  }
}

let hammer: Hammer | null = null;
process.on('message', (order: Order) => {
  if (hammer === null) {
    hammer = new Hammer(order);
    void hammer.start();
  }
  process.send?.(hammer.state());
});
process.on('disconnect', () => process.exit());
