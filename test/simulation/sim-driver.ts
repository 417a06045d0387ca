import { takeCensus } from '../../src/store/postgres/sql/census.ts';
import { keepPlans, type Look, lookAtServer, ping } from '../../src/store/postgres/sql/connection.ts';
import * as lateAnswer from '../../src/store/postgres/sql/late-answer.ts';
import * as lease from '../../src/store/postgres/sql/lease.ts';
import * as loops from '../../src/store/postgres/sql/loops.ts';
import * as read from '../../src/store/postgres/sql/read.ts';
import * as reserve from '../../src/store/postgres/sql/reserve.ts';
import * as settle from '../../src/store/postgres/sql/settle.ts';
import type { Statement } from '../../src/store/postgres/sql/statement.ts';
import type { SimRows } from './sim-server.ts';

/** What a new connection is told: durable, writable, many records, no pooler. */
const look: Look = ['on', 'on', '', false, 1_000_000, 0];

/** What stands between a sidecar and the server. */
export interface Wire {
  /** Rejects when there is no way to the server: nothing was sent. */
  connect(): Promise<void>;
  /** May never settle: the pool bounds its wait. */
  send(sent: Sent): Promise<SimRows>;
}

export interface Sent {
  readonly label: string;
  readonly values: readonly unknown[];
  /** The sidecar has not given it up. */
  readonly isAwaited: () => boolean;
}

const labels = new Map<string, string>();
for (const room of [lateAnswer, lease, loops, read, reserve, settle, { takeCensus, ping }])
  for (const { text, label } of Object.values(room as Record<string, Statement>)) labels.set(text, label);

/** What src/store/postgres/pool.ts uses of pg's Pool. */
export class SimDriver {
  readonly #wire: Wire;
  #isEnded = false;
  #underWay = 0;
  #whenIdle: (() => void) | null = null;

  constructor(wire: Wire) {
    this.#wire = wire;
  }

  on(): this {
    return this;
  }

  async connect(): Promise<SimClient> {
    if (this.#isEnded) throw new Error('Cannot use a pool after calling end on the pool');
    await this.#wire.connect();
    this.#underWay += 1;
    return new SimClient(this.#wire, () => this.#released());
  }

  async end(): Promise<void> {
    this.#isEnded = true;
    if (this.#underWay === 0) return;
    await new Promise<void>((resolve) => {
      this.#whenIdle = resolve;
    });
  }

  #released(): void {
    this.#underWay -= 1;
    if (this.#underWay === 0) this.#whenIdle?.();
  }
}

/** What it uses of pg's clients. */
class SimClient {
  readonly #wire: Wire;
  readonly #onRelease: () => void;
  readonly processID = 0;
  #isReleased = false;

  constructor(wire: Wire, onRelease: () => void) {
    this.#wire = wire;
    this.#onRelease = onRelease;
  }

  on(): void {}

  off(): void {}

  async query(asked: string | { text: string; values: unknown[] }): Promise<{ rows: SimRows }> {
    if (asked === keepPlans) return { rows: [] };
    const { text, values } = asked as { text: string; values: unknown[] };
    if (text === lookAtServer) return { rows: [look] };
    const label = labels.get(text) as string;
    return { rows: await this.#wire.send({ label, values, isAwaited: () => !this.#isReleased }) };
  }

  release(): void {
    this.#isReleased = true;
    this.#onRelease();
  }
}
