import { inProcess } from '../test/cli/in-process.ts';
import { type Asked, ask } from './client.ts';
import type { Call, Freed, Look } from './facts.ts';
import type { Lane } from './lane.ts';
import type { Plan } from './plan.ts';
import type { Replica } from './replica.ts';
import type { Wish } from './upstream.ts';

export interface Question {
  readonly replica: Replica;
  readonly tenant: string;
  readonly key: string;
  readonly path?: string;
  readonly body?: Call['body'];
  /** As the first call of its key wished: it is in the body, so that retries must wish the same. */
  readonly hold?: Wish['hold'];
}

const looking = `SELECT tenant, key, state, attempt
FROM oncegate.record
WHERE key = ANY ($1)`;

/** Of the first tenant's keys, the only ones that anybody frees. Not joined with the record, which may be gone by then. */
const freeing = `SELECT 'a' AS tenant, audit.key, extract(epoch FROM audit.at)::float8 * 1000 AS at
FROM oncegate.audit AS audit
WHERE audit.key = ANY ($1) AND audit.action IN ('release', 'purge')`;

/** Everything that is asked and seen in one run. */
export class Notes {
  readonly plan: Plan;
  readonly lane: Lane;
  readonly secret: string;
  readonly calls: Call[] = [];
  readonly looks: Look[] = [];
  /** The key that the fault meets; the other tenant has the same. */
  readonly key: string;
  /** One that is first asked for while a line is cut. */
  readonly newKey: string;
  /** The record, committed, when the word of it was lost. */
  lost: Look | undefined;
  readonly #keys = new Set<string>();
  readonly #under = new Set<Promise<Call>>();
  readonly #wishes = new Map<string, Wish['hold']>();
  /** Calls for which the upstream may wait; null: it waits no more. */
  #held: Set<string> | null = new Set<string>();
  #asked = 0;

  constructor(lane: Lane, plan: Plan, tries: number) {
    this.lane = lane;
    this.plan = plan;
    this.key = `key-${plan.number}-${tries}`;
    this.newKey = `new-${this.key}`;
    this.secret = `secret-${plan.number}-${tries}`;
    // A run that missed its point is played again: its calls must not be taken for those before.
    this.#asked = tries * 1_000;
  }

  ask({ replica, tenant, key, path, body = 'same', hold = 'no' }: Question): Asked {
    const { plan } = this;
    const call = `${plan.number}.${++this.#asked}`;
    this.#keys.add(key);
    const id = `${tenant} ${key}`;
    const wished = this.#wishes.get(id) ?? hold;
    this.#wishes.set(id, wished);
    if (wished !== 'no') this.#hold(call);
    const isMain = key === this.key && tenant === 'a';
    const asked = ask({
      call,
      run: plan.number,
      replica,
      tenant,
      key,
      path: path ?? plan.path,
      body,
      wish: {
        statuses: isMain ? plan.statuses : [201],
        answerBytes: isMain ? plan.answerBytes : 100,
        hold: wished,
      },
      requestBytes: isMain ? plan.requestBytes : 0,
      secret: this.secret,
    });
    this.#under.add(asked.done);
    void asked.done.then((seen) => {
      this.calls.push(seen);
      this.#under.delete(asked.done);
    });
    return asked;
  }

  /** When no client waits any more. */
  async answered(): Promise<void> {
    while (this.#under.size > 0) await Promise.all(this.#under);
  }

  /** The upstream goes on with what it holds. */
  release(): void {
    for (const call of this.#held ?? []) this.lane.upstream.release(call);
    this.#held = null;
  }

  #hold(call: string): void {
    if (this.#held === null) this.lane.upstream.release(call);
    else this.#held.add(call);
  }

  async look(): Promise<Look[]> {
    const { rows } = await this.lane.database.query<Omit<Look, 'at'>>(looking, [[...this.#keys]]);
    const at = Date.now();
    const seen = rows.map((row) => ({ at, ...row }));
    this.looks.push(...seen);
    return seen;
  }

  /** What the database has of the key that the fault meets. */
  async lookAtMain(): Promise<Look | undefined> {
    return (await this.look()).find(({ tenant, key }) => tenant === 'a' && key === this.key);
  }

  async freed(): Promise<Freed[]> {
    const { rows } = await this.lane.database.query<Freed>(freeing, [[...this.#keys]]);
    return rows;
  }

  /** "It did not happen: let the client retry", said by an operator. */
  async freeByOperator(): Promise<void> {
    const { lane, key, plan } = this;
    const which = [
      '--key',
      key,
      '--tenant',
      'a',
      '--path',
      plan.path,
      '--config',
      lane.replicas[0]?.configFile ?? '',
    ];
    const what = ['--released', '--reason', 'torture', '--yes', '--database-url', lane.databaseUrl];
    const { code, out, err } = await inProcess(['keys', 'resolve', ...which, ...what]);
    if (code !== 0) throw new Error(`keys resolve ended with ${code}: ${out}${err}`);
  }
}
