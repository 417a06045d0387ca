import type { Sidecar } from './sidecar.ts';
import { answerName } from './sim-server.ts';
import { Connection, type Seen } from './sockets.ts';
import type { World } from './world.ts';

/** One who wants a thing done once, and asks until it is. */
interface Caller {
  readonly tenant: string;
  readonly key: string;
  readonly body: string;
  tries: number;
}

interface Call {
  readonly requestId: string;
  readonly begunMs: number;
  readonly sidecar: Sidecar;
}

interface Final {
  readonly name: string;
  readonly status: number;
  readonly body: string;
  readonly atMs: number;
}

/** The clients, and what they must never see. */
export class Callers {
  readonly #world: World;
  readonly #sidecars: () => readonly Sidecar[];
  readonly #finals = new Map<string, Final>();
  readonly #bodiesOf = new Map<string, Set<string>>();
  #requests = 0;
  readonly pending = new Set<string>();
  calls = 0;
  /** Calls answered by an execution or a replay. */
  served = 0;
  /** Nobody calls any more. */
  isClosed = false;

  constructor(world: World, sidecars: () => readonly Sidecar[]) {
    this.#world = world;
    this.#sidecars = sidecars;
  }

  /** Everybody who will call, and when. */
  invite(untilMs: number): void {
    const { choices, clock } = this.#world;
    const tenants = choices.pick([['t1'], ['t1', 't2']]);
    const keys = choices.pick([['k1'], ['k1', 'k2'], ['k1', 'k2', 'k3']]);
    for (let left = choices.between(1, 6); left > 0; left -= 1) {
      const tenant = choices.pick(tenants);
      const key = choices.pick(keys);
      const body = `${tenant} ${key} ${choices.weighted([
        [7, 'b1'],
        [1, 'b2'],
      ])}`;
      const caller = { tenant, key, body, tries: choices.between(1, 4) };
      const atMs = choices.weighted([
        [3, () => 500 + choices.between(0, 50)],
        [2, () => choices.between(500, untilMs)],
      ])();
      clock.after(atMs, null, 'caller', () => this.#call(caller));
    }
  }

  #call(caller: Caller): void {
    if (this.isClosed) return;
    const { choices, clock, ledger, note } = this.#world;
    const sidecar = choices.pick(this.#sidecars());
    caller.tries -= 1;
    if (sidecar === undefined) return this.#again(caller);
    this.#requests += 1;
    this.calls += 1;
    const requestId = `r${this.#requests}`;
    ledger.bodyOf.set(requestId, caller.body);
    const id = `${caller.tenant} ${caller.key}`;
    this.#bodiesOf.set(id, (this.#bodiesOf.get(id) ?? new Set()).add(caller.body));
    note(`${requestId}: ${caller.body} at ${sidecar.name}`);
    const begunMs = clock.nowMs;
    let hasLeft = false;
    const headers = ['idempotency-key', caller.key, 'x-tenant', caller.tenant, 'host', 'here'];
    const connection = new Connection(headers, (seen) => {
      this.pending.delete(requestId);
      sidecar.connections.delete(connection);
      if (!hasLeft) this.#see(caller, { requestId, begunMs, sidecar }, seen);
      if (!hasLeft) this.#again(caller);
    });
    this.pending.add(requestId);
    sidecar.connections.add(connection);
    clock.after(1, sidecar, `request ${requestId}`, () => {
      sidecar.take(connection, requestId);
      if (choices.chance(0.05))
        clock.after(choices.between(1, 500), sidecar, 'body', () => connection.sendBody(caller.body));
      else connection.sendBody(caller.body);
    });
    if (!choices.chance(0.12)) return;
    const leave = () => {
      if (!this.pending.has(requestId)) return;
      hasLeft = true;
      this.#world.saw('client left');
      connection.leave();
      this.#again(caller);
    };
    clock.after(
      choices.weighted([
        [2, () => choices.between(1, 20)],
        [1, () => choices.between(20, 9_000)],
      ])(),
      sidecar,
      `${requestId} leaves`,
      leave,
    );
  }

  #again(caller: Caller): void {
    const { choices, clock } = this.#world;
    if (caller.tries === 0) return;
    const afterMs = choices.weighted([
      [3, () => choices.between(1, 100)],
      [2, () => choices.between(100, 5_000)],
      [1, () => choices.between(5_000, 60_000)],
    ])();
    clock.after(afterMs, null, 'caller again', () => this.#call(caller));
  }

  #see(caller: Caller, { requestId, begunMs, sidecar }: Call, seen: Seen): void {
    const { clock, ledger, note, saw, server } = this.#world;
    const { status, headers, body, isWhole } = seen;
    const said = headers.get('idempotency-status') ?? '';
    ledger.answered.add(requestId);
    note(
      `${requestId}: ${status} ${said} ${isWhole ? '' : 'cut '}${body.slice(0, 40).replaceAll('\n', ' ')}`,
    );
    if (status === 0) {
      if (!sidecar.isDead && !sidecar.hasCut) ledger.fault(`${requestId} was cut: a fault of ours`);
      return;
    }
    const id = ledger.idOf(caller.tenant, caller.key) ?? '';
    if (headers.get('content-type') === 'application/problem+json') {
      this.#seeProblem(caller, seen);
      return;
    }
    if (!body.startsWith(`${caller.body} `)) ledger.fault(`${requestId} got the answer of another request`);
    const outrunAt = ledger.outrunAt(Number(/ run (\d+) /.exec(body)?.[1] ?? 0));
    const begunAt = begunMs + server.nowMs - clock.nowMs;
    if (said === 'replayed' && outrunAt !== null && begunAt > outrunAt && !ledger.lossy.has(id))
      ledger.fault(`${requestId} got an old answer, though the key had been run again`);
    const isFinal = said === 'executed' || said === 'replayed';
    if (isFinal) this.served += 1;
    if (headers.get('idempotent-replayed') === 'true') saw('replayed');
    const final = this.#finals.get(caller.body);
    if (final !== undefined && begunMs > final.atMs && isWhole && !ledger.expired.has(final.name)) {
      if (final.status !== status || final.body !== body)
        ledger.fault(`${requestId} got another answer than was seen before`);
    }
    if (!isFinal) return;
    const kept = { id, status, body: Buffer.from(body) };
    const isKept = server.durableAnswers.has(answerName(kept));
    const isKeptWithout = server.durableAnswers.has(answerName({ ...kept, body: null }));
    if (!isKept && !isKeptWithout) ledger.fault(`${requestId} saw an answer that is not durable`);
    if (isKept) this.#finals.set(caller.body, { name: answerName(kept), status, body, atMs: clock.nowMs });
  }

  #seeProblem(caller: Caller, { status, headers, body }: Seen): void {
    const { ledger, saw } = this.#world;
    const { code } = JSON.parse(body) as { code: string };
    saw(`answered ${code}`);
    if (/ run \d/.test(body) || [...headers.keys()].includes('x-run'))
      ledger.fault(`${status} ${code} carries an answer`);
    if (code === 'key_reused' && (this.#bodiesOf.get(`${caller.tenant} ${caller.key}`)?.size ?? 0) < 2)
      ledger.fault('key_reused, and only one body was ever sent with it');
  }
}
