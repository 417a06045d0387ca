import { type Channel, channel } from 'node:diagnostics_channel';
import type { RecordId } from './core/record.ts';
import type { Outcome } from './core/settle.ts';
import type { Census, Swept } from './store/store.ts';

/** What happens, by name. Metrics, logs and tests listen; nothing here changes what is done. */
class Event<Fact> {
  readonly #channel: Channel;

  constructor(name: string) {
    this.#channel = channel(name);
  }

  publish(fact: Fact): void {
    if (this.#channel.hasSubscribers) this.#channel.publish(fact);
  }

  /** Gives back what ends the subscription. */
  subscribe(listener: (fact: Fact) => void): () => void {
    const onMessage = (fact: unknown) => listener(fact as Fact);
    this.#channel.subscribe(onMessage);
    return () => this.#channel.unsubscribe(onMessage);
  }
}

/** A guarded request has been answered, or its client has gone. */
export interface RequestDone {
  readonly requestId: string;
  readonly method: string;
  readonly route: string;
  /** 0: the client had gone. */
  readonly status: number;
  /** What was decided before forwarding: `execute`, `take_over`, `replay`, `wait`, `gone`, or a problem's code. */
  readonly verdict: string;
  /** What the upstream's answer, or its absence, came to; null when nothing was forwarded. */
  readonly outcome: Outcome | 'refused' | null;
  readonly id: RecordId | null;
  /** That its attempt was opened under, which may have lost its lease since; null: it had none. */
  readonly instance: string | null;
  readonly error: Error | null;
  readonly totalMs: number;
  /** null: that part did not happen. */
  readonly reserveMs: number | null;
  readonly forwardMs: number | null;
  readonly completeMs: number | null;
}

/** A request that is not guarded has been passed through. */
export interface PassDone {
  readonly requestId: string;
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly totalMs: number;
}

export interface LoopDone {
  readonly loop: string;
  readonly counts: Readonly<Record<string, number>>;
  readonly ms: number;
  readonly error: Error | null;
}

/** An answer came after another attempt had taken the key, or after the record was settled otherwise. */
export interface AnswerRefused {
  readonly instance: string;
  readonly route: string;
  readonly id: RecordId;
  readonly attempt: string;
  readonly requestId: string;
  readonly status: number | null;
  readonly outcome: Outcome;
  /** Whether the store keeps it as evidence; false: this event is all there is. */
  readonly kept: boolean;
}

/** This instance got a new id: its first, or one after its lease lapsed. */
export interface LeaseOpened {
  readonly instance: string;
}

export const requestDone = new Event<RequestDone>('oncegate:request');
export const passDone = new Event<PassDone>('oncegate:pass');
export const loopDone = new Event<LoopDone>('oncegate:loop');
export const recordSwept = new Event<Swept>('oncegate:swept');
export const answerRefused = new Event<AnswerRefused>('oncegate:answer-refused');
export const censusTaken = new Event<Census>('oncegate:census');
/** Whoever reads our log is too slow, or gone. */
export const logLineDropped = new Event<void>('oncegate:log-line-dropped');
export const leaseOpened = new Event<LeaseOpened>('oncegate:lease');
