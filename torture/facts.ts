/** What is known about one faulted run. All of it is data: the checker sees nothing else. Times are wall milliseconds. */

/** One request at the upstream: it counts from its head on, whatever becomes of it. */
export interface Start {
  /** Unique in the log. */
  readonly start: string;
  readonly run: number;
  /** The client's call that it was sent for. */
  readonly call: string;
  readonly tenant: string;
  readonly key: string;
  readonly path: string;
  readonly attempt: string;
  /** Which sidecar sent it. */
  readonly replica: number;
  readonly at: number;
  /** null: it never came to an answer. */
  readonly answer: UpstreamAnswer | null;
}

interface UpstreamAnswer {
  /** Written to the log before the first byte of it left. */
  readonly at: number;
  readonly status: number;
  /** Of everything that a replay must repeat. */
  readonly digest: string;
  /** Random, and in no other answer. */
  readonly token: string;
}

/** One request of a client's, and what came back. */
export interface Call {
  readonly call: string;
  readonly run: number;
  readonly replica: number;
  readonly tenant: string;
  readonly key: string;
  readonly path: string;
  /** `differs`: the same key with another body, which must be refused. */
  readonly body: 'same' | 'differs';
  readonly beganAt: number;
  readonly endedAt: number;
  readonly end: 'answered' | 'cut' | 'left';
  /** The rest only where it was answered, whole. */
  readonly status: number;
  /** `Idempotency-Status`. */
  readonly how: string;
  /** `code` of a problem. */
  readonly code: string;
  readonly digest: string;
  /** What an answer of the upstream's says of itself; '' in our own. */
  readonly names: { readonly start: string; readonly tenant: string; readonly key: string };
  /** Of our own answers: all of it, head and body. '' of the upstream's. */
  readonly text: string;
}

/** A record as the database had it at that moment. */
export interface Look {
  readonly at: number;
  readonly tenant: string;
  readonly key: string;
  readonly state: string;
  readonly attempt: string;
}

/** An operator's release. */
export interface Freed {
  readonly at: number;
  readonly tenant: string;
  readonly key: string;
}

interface Fault {
  readonly point: string;
  readonly action: string;
  readonly replica: number;
  readonly at: number;
  readonly healedAt: number;
  /** While nothing could pass between this sidecar and the store. */
  readonly storeCut: { readonly from: number; readonly until: number } | null;
}

export interface RunFacts {
  readonly run: number;
  readonly fault: Fault;
  readonly starts: readonly Start[];
  readonly calls: readonly Call[];
  /** In the order of time; the last of a key is how it was at the end. */
  readonly looks: readonly Look[];
  readonly freed: readonly Freed[];
  /** Keys that were still in progress when every one should have been settled. */
  readonly stillInProgress: readonly string[];
  /** The secret that each request's body holds. */
  readonly secret: string;
}
