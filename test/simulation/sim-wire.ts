import type { Owner } from './clockwork.ts';
import type { Sent, Wire } from './sim-driver.ts';
import type { SimRows } from './sim-server.ts';
import { SqlError } from './sql-error.ts';
import { arrayOf } from './wire-arrays.ts';
import { drawDelayMs, type World } from './world.ts';

/** What happens to a statement. */
type Fate =
  | 'answered'
  /** Applied; nobody hears of it. */
  | 'answer_lost'
  /** Never applied; nobody hears of it. */
  | 'lost'
  /** Given up by the sidecar, and applied long after. */
  | 'late'
  /** The server says no on a live connection: nothing was committed. */
  | 'refused';

const inHarm = [
  [4, 'answer_lost'],
  [3, 'lost'],
  [3, 'late'],
  [2, 'refused'],
] as const satisfies readonly (readonly [number, Fate])[];

/** One sidecar's way to the server. */
export class SimWire implements Wire {
  readonly #world: World;
  readonly #owner: Owner;
  /** Cut off from the server until then. */
  cutUntilMs = 0;

  constructor(world: World, owner: Owner) {
    this.#world = world;
    this.#owner = owner;
  }

  async connect(): Promise<void> {
    const { clock, choices, saw } = this.#world;
    if (clock.nowMs >= this.cutUntilMs) return;
    saw('store unreachable');
    const afterMs = choices.pick([1, 3_000]);
    await new Promise((_, reject) => {
      clock.after(afterMs, this.#owner, 'connection refused', () => reject(new Error('ECONNREFUSED')));
    });
  }

  send(sent: Sent): Promise<SimRows> {
    const { clock, choices, server, settings } = this.#world;
    const isCut = clock.nowMs < this.cutUntilMs;
    const isHarmed = choices.chance(settings.storeTrouble) && !choices.isCalm;
    const fate = isCut ? 'lost' : isHarmed ? choices.weighted(inHarm) : 'answered';
    const { generation } = server;
    return new Promise((resolve, reject) => {
      const answer = (afterMs: number, what: string, give: () => void) => {
        clock.after(afterMs, this.#owner, `${what} ${sent.label}`, give);
      };
      // Silence ends with the pool's own timeout.
      const cut = () => {
        if (choices.chance(0.5)) return;
        answer(drawDelayMs(choices), 'cut', () => reject(new Error('Connection terminated unexpectedly')));
      };
      if (fate === 'lost') return cut();
      if (fate === 'refused') {
        const refuse = () => reject(new SqlError(choices.pick(['55P03', '40P01', '25006']), 'refused'));
        return answer(drawDelayMs(choices), 'refused', refuse);
      }
      const wayMs = fate === 'late' ? choices.between(2_000, 45_000) : drawDelayMs(choices);
      if (fate === 'late') cut();
      clock.after(wayMs, null, `${fate} ${sent.label}`, () => {
        if (server.generation !== generation) return;
        const isAcknowledged = fate === 'answered' || choices.chance(0.5);
        try {
          const rows = this.#apply(sent, isAcknowledged);
          if (fate === 'answer_lost') cut();
          if (fate === 'answered')
            answer(drawDelayMs(choices), 'answer', () => {
              this.#noteAnswer(sent, rows);
              resolve(rows);
            });
        } catch (error) {
          if (!(error instanceof SqlError)) throw error;
          answer(1, 'error', () => reject(error));
        }
      });
    });
  }

  #apply(sent: Sent, isAcknowledged: boolean): SimRows {
    const { server, saw } = this.#world;
    const rows = server.execute(sent.label, sent.values, isAcknowledged);
    if (!sent.isAwaited() && rows.length > 0) saw(`late ${sent.label}`);
    return rows;
  }

  /** What the sidecar may now know. */
  #noteAnswer({ label, values, isAwaited }: Sent, rows: SimRows): void {
    if (!isAwaited()) return;
    const { ledger, saw } = this.#world;
    if (label === 'reserve' || label === 'take_over')
      for (const [attempt] of rows) ledger.acknowledged.add(attempt as string);
    if (label !== 'confirm') return;
    const isReservation = arrayOf<string>(values[3])[0] === 'in_progress';
    for (const [attempt] of rows) {
      if (isReservation) ledger.acknowledged.add(attempt as string);
      else ledger.settled(attempt as string);
    }
    if (rows.length > 0) saw(isReservation ? 'unconfirmed reserve: mine' : 'unconfirmed settlement: done');
  }
}
