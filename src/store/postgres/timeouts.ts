/** Milliseconds. Tests shorten them. */
export interface Timeouts {
  /** To get a connection. Errs short: a caller behind it holds a client's request. */
  readonly connectMs: number;
  /** One statement of a reservation. A commit takes a few; past this the server is in trouble and the caller gets 503. */
  readonly reserveMs: number;
  /** In the queue of reservations: longer than one batch in trouble, shorter than two. Beyond it: refused at once. */
  readonly queueMs: number;
  /** One statement of a settlement; longer than for a reservation, since giving up early only means asking again. */
  readonly settleMs: number;
  /** A renewal that takes longer is no use. */
  readonly leaseMs: number;
  /** A pass that takes longer is cut and comes again. */
  readonly loopMs: number;
}

export const defaultTimeouts: Timeouts = {
  connectMs: 3_000,
  reserveMs: 2_000,
  queueMs: 5_000,
  settleMs: 5_000,
  leaseMs: 5_000,
  loopMs: 10_000,
};

/** More time for more bytes: a body of 100 MB over a slow line would otherwise be cut and sent again for ever. */
export function withBytes(timeoutMs: number, bytes: number): number {
  return timeoutMs + bytes / slowestBytesPerMs;
}

/** 2 MB a second. Errs low: it only lengthens the wait for what is large. */
const slowestBytesPerMs = 2_000;
