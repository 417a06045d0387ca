import type { Cors } from './cors.ts';
import type { FingerprintRule } from './fingerprint-rule.ts';
import type { Dialect } from './problem.ts';
import type { OutcomeTable } from './settle.ts';

/** Where guarded and passed-through requests of a route go. */
export interface UpstreamTarget {
  /** Origin only: scheme, host, port. */
  readonly origin: string;
  /** From queueing to the last byte of the answer. */
  readonly timeoutMs: number;
  readonly connections: number;
  /** `preserve`: the client's Host; `upstream`: the target's own. */
  readonly host: 'preserve' | 'upstream';
}

export type ForwardKey =
  | { readonly kind: 'keep' }
  | { readonly kind: 'strip' }
  | { readonly kind: 'rename'; readonly header: string };

export const guardableMethods = ['POST', 'PATCH', 'PUT', 'DELETE'] as const;

/** Everything that decides how one request is treated; resolved from defaults and routes when the config is loaded. */
export interface Policy {
  /** The route's path pattern, or `default`: a label for logs and metrics, never part of identity. */
  readonly route: string;
  readonly mode: 'enforce' | 'off';
  readonly methods: readonly string[];
  readonly requireKey: boolean;
  readonly fingerprint: FingerprintRule;
  readonly inFlight: { readonly waitMs: number; readonly answer: 409 | 202 | 503 };
  readonly outcomes: OutcomeTable;
  readonly retentionMs: number;
  readonly maxRequestBodyBytes: number;
  readonly maxStoredBodyBytes: number;
  readonly replayStatus: 'original' | 200;
  readonly forwardKey: ForwardKey;
  /** One more commit before sending, so that a crash before it frees the key instead of leaving it unknown. */
  readonly dispatchMark: boolean;
  readonly dialect: Dialect;
  readonly cors: Cors;
  readonly upstream: UpstreamTarget;
}
