import { Call, type CallOwner } from '../../src/upstream/call.ts';
import type { AnswerSink, UpstreamCall, UpstreamRequest } from '../../src/upstream/client.ts';
import { drawAnswer, type PlannedAnswer } from './planned-answer.ts';
import type { Sidecar } from './sidecar.ts';
import { drawDelayMs, type World } from './world.ts';

type Handler = Pick<Call, 'onConnect' | 'onHeaders' | 'onData' | 'onComplete' | 'onError'>;

/** What becomes of one request on its way to the upstream and back. */
type Course =
  | 'answered'
  /** It runs, and nothing is ever heard of it. */
  | 'hangs'
  | 'cut_before_head'
  | 'cut_after_head'
  /** Sent, and lost before it ran. */
  | 'not_received'
  /** No connection: request-start never happens. */
  | 'unreachable';

const troubles = [
  [3, 'hangs'],
  [3, 'cut_before_head'],
  [2, 'cut_after_head'],
  [1, 'not_received'],
  [2, 'unreachable'],
] as const satisfies readonly (readonly [number, Course])[];

/** The upstream seen from one sidecar: the real Call, and in place of undici's pool a connection that the schedule rules. */
export class SimUpstreamClient implements CallOwner {
  readonly #world: World;
  readonly #sidecar: Sidecar;
  readonly #live = new Map<Call, UpstreamRequest>();
  #isClosed = false;

  constructor(world: World, sidecar: Sidecar) {
    this.#world = world;
    this.#sidecar = sidecar;
  }

  dispatch(request: UpstreamRequest, sink: AnswerSink): UpstreamCall {
    const { method, path, headers, body } = request;
    const call = new Call(this, request, sink, { method, path, headers: headers as string[], body });
    this.#live.set(call, request);
    if (this.#isClosed) {
      call.fail(new Error('the upstream client is closed'));
      return call;
    }
    call.dispatch(() => {
      call.start();
      return true;
    });
    return call;
  }

  send(call: Call): void {
    this.#queue(this.#live.get(call) as UpstreamRequest, call);
  }

  ended(call: Call): void {
    this.#live.delete(call);
  }

  /** Ends every call now. */
  async destroy(): Promise<void> {
    this.#isClosed = true;
    for (const call of this.#live.keys()) call.abort(new Error('the upstream client was destroyed'));
  }

  sinkFailed(error: Error): void {
    this.#world.ledger.fault(`a sink failed: ${error.message}`);
  }

  #queue(request: UpstreamRequest, handler: Handler): void {
    const { choices, clock, settings } = this.#world;
    const isHarmed = choices.chance(settings.upstreamTrouble) && !choices.isCalm;
    const course: Course = isHarmed ? choices.weighted(troubles) : 'answered';
    if (course === 'unreachable') {
      const refuse = () => handler.onError(new Error('ECONNREFUSED'));
      clock.after(drawDelayMs(choices), this.#sidecar, 'upstream unreachable', refuse);
      return;
    }
    const start = () => new Passage(this.#world, this.#sidecar, request, handler).start(course);
    const { onQueued } = this.#sidecar;
    if (onQueued !== null) {
      this.#sidecar.onQueued = null;
      clock.after(onQueued(), this.#sidecar, 'request-start', start);
      return;
    }
    // A free connection starts it before dispatch returns; else it stands in the queue.
    const isQueued = choices.chance(0.3);
    if (!isQueued) return start();
    const isLong = choices.chance(settings.upstreamTrouble / 2) && !choices.isCalm;
    const queuedMs = isLong ? choices.between(2_000, 40_000) : drawDelayMs(choices);
    clock.after(queuedMs, this.#sidecar, 'request-start', start);
  }
}

/** One request on a connection. */
class Passage {
  readonly #world: World;
  readonly #sidecar: Sidecar;
  readonly #request: UpstreamRequest;
  readonly #handler: Handler;
  readonly #attempt: string;
  #isOver = false;

  constructor(world: World, sidecar: Sidecar, request: UpstreamRequest, handler: Handler) {
    this.#world = world;
    this.#sidecar = sidecar;
    this.#request = request;
    this.#handler = handler;
    this.#attempt = valueOf(request.headers, 'oncegate-attempt');
  }

  start(course: Course): void {
    const { choices, ledger, saw } = this.#world;
    try {
      this.#handler.onConnect((reason) => this.#fail(reason as Error));
    } catch (error) {
      // As undici does: nothing is written.
      saw('start refused');
      return this.#fail(error as Error);
    }
    const epoch = Number(valueOf(this.#request.headers, 'oncegate-epoch'));
    ledger.sent({
      attempt: this.#attempt,
      epoch,
      body: this.#request.body.toString(),
      sidecar: this.#sidecar,
    });
    if (course === 'not_received') return this.#later('reset', () => this.#fail(new Error('ECONNRESET')));
    const answer = drawAnswer(this.#world, this.#request, this.#attempt);
    this.#world.clock.after(drawDelayMs(choices), null, 'upstream runs', () => {
      if (course !== 'hangs') this.#later('head', () => this.#answer(course, answer));
    });
  }

  #answer(course: Course, answer: PlannedAnswer): void {
    if (course === 'cut_before_head') return this.#fail(new Error('ECONNRESET'));
    if (this.#isOver) return;
    const { ledger } = this.#world;
    const headers = answer.headers.map((one) => Buffer.from(one));
    ledger.head(this.#attempt, answer);
    this.#handler.onHeaders(answer.status, headers);
    this.#pieces(course, answer.pieces);
  }

  #pieces(course: Course, [piece, ...rest]: readonly string[]): void {
    const isLast = rest.length === 0;
    if (this.#isOver) return;
    if (isLast && course === 'cut_after_head') return this.#fail(new Error('ECONNRESET'));
    this.#world.ledger.data(this.#attempt, piece as string);
    this.#handler.onData(Buffer.from(piece as string));
    if (!isLast) return this.#later('more', () => this.#pieces(course, rest));
    this.#isOver = true;
    this.#world.ledger.whole(this.#attempt);
    this.#handler.onComplete();
  }

  #later(what: string, run: () => void): void {
    const { choices, clock, settings } = this.#world;
    const isSlow = choices.chance(settings.upstreamTrouble / 4) && !choices.isCalm;
    const afterMs = isSlow ? choices.between(3_000, 12_000) : drawDelayMs(choices);
    clock.after(afterMs, this.#sidecar, `upstream: ${what}`, run);
  }

  #fail(reason: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#handler.onError(reason);
  }
}

function valueOf(flat: readonly string[], name: string): string {
  const at = flat.findIndex((one, index) => index % 2 === 0 && one.toLowerCase() === name);
  return flat[at + 1] as string;
}
