import type { ServerResponse } from 'node:http';
import type { Teardown } from '../test/helpers/postgres.ts';
import { maxStoredBytes } from './call.ts';
import { answer, bodyOf, type LoggedUpstream, loggedUpstream, type Start } from './logged-upstream.ts';
import type { Random } from './random.ts';

interface Mood {
  readonly name: string;
  /** Of 1,000 starts; the rest is answered at once. */
  readonly weight: number;
  /** By the `standard` table: after this answer, and no other, the key may run again. */
  readonly frees?: true;
  act(start: Start, res: ServerResponse, random: Random): void;
}

const status =
  (code: number, headers: Record<string, string> = {}) =>
  (start: Start, res: ServerResponse): void =>
    void res.writeHead(code, { 'Content-Type': 'application/json', ...headers }).end(bodyOf(start));

const long =
  (bytes: number) =>
  (start: Start, res: ServerResponse): void => {
    const headers = { 'Content-Type': 'application/json', Location: `/starts/${start.number}` };
    res.writeHead(201, headers).end(bodyOf(start).padEnd(bytes));
  };

const moods: readonly Mood[] = [
  {
    name: '201 after a while',
    weight: 30,
    act: (start, res, random) => void setTimeout(answer, random.between(200, 900), start, res),
  },
  { name: '201 of 100 kB', weight: 15, act: long(100_000) },
  { name: '201 too large to keep', weight: 5, act: long(2 * maxStoredBytes) },
  { name: '402', weight: 15, act: status(402) },
  { name: '500', weight: 15, frees: true, act: status(500) },
  { name: '429', weight: 10, frees: true, act: status(429) },
  { name: '503 with Retry-After', weight: 10, frees: true, act: status(503, { 'Retry-After': '1' }) },
  { name: '503 without', weight: 3, act: status(503) },
  { name: 'no answer', weight: 3, act: () => {} },
  { name: 'reset', weight: 3, act: (_start, res) => void res.socket?.resetAndDestroy() },
  {
    name: 'cut in the middle',
    weight: 3,
    act: (start, res) => {
      res.writeHead(201, { 'Content-Length': '1000' });
      res.write(bodyOf(start), () => res.destroy());
    },
  },
];

/** Milliseconds of an answer that comes at once. */
const slowestMs = 20;

/** Mostly answers; now and then it does what real services do, and knows which of its answers freed a key. */
export class MoodyUpstream implements LoggedUpstream {
  /** Starts by what became of them. */
  readonly moods: Record<string, number> = {};
  readonly #random: Random;
  /** By number of a start whose answer freed its key: how many starts there were by then. */
  readonly #freed = new Map<number, number>();
  #log: LoggedUpstream = { url: '', starts: [], startsOf: () => [] };
  #isCalm = false;

  private constructor(random: Random) {
    this.#random = random;
  }

  static async start(t: Teardown, random: Random): Promise<MoodyUpstream> {
    const upstream = new MoodyUpstream(random);
    upstream.#log = await loggedUpstream(t, (start, res) => upstream.#respond(start, res));
    return upstream;
  }

  get url(): string {
    return this.#log.url;
  }

  get starts(): readonly Start[] {
    return this.#log.starts;
  }

  startsOf(key: string): readonly Start[] {
    return this.#log.startsOf(key);
  }

  /** From now on it only answers. */
  calm(): void {
    this.#isCalm = true;
  }

  /** Starts of a key that came although no answer had freed it since the one before. */
  faultsOf(key: string): readonly string[] {
    return this.startsOf(key).flatMap((start, i, all) => {
      const before = all[i - 1];
      if (before === undefined) return [];
      const freedAt = this.#freed.get(before.number);
      const isFree = freedAt !== undefined && start.number > freedAt;
      return isFree
        ? []
        : [`${key}: start ${start.number} after start ${before.number}, which freed nothing`];
    });
  }

  /** Keys that ran again after an answer that freed them are within their rights. */
  get freed(): number {
    return this.#freed.size;
  }

  #respond(start: Start, res: ServerResponse): void {
    const mood = this.#isCalm ? null : this.#pick();
    const name = mood?.name ?? '201';
    this.moods[name] = (this.moods[name] ?? 0) + 1;
    if (mood === null) setTimeout(answer, this.#random.between(0, slowestMs), start, res);
    else {
      // Before the first byte leaves, after which the next start may come; nobody hears what is said to one who has gone.
      if (mood.frees && !res.destroyed) this.#freed.set(start.number, this.starts.length);
      mood.act(start, res, this.#random);
    }
  }

  #pick(): Mood | null {
    let drawn = this.#random.between(1, 1_000);
    return moods.find(({ weight }) => (drawn -= weight) <= 0) ?? null;
  }
}
