import type { Policy } from '../core/policy.ts';
import type { ScopePart } from '../core/scope.ts';

/** The settings of the sidecars on which decisions about their records rest. Whoever calls this room hands them in; the room reads no config. */
export interface OperatorSettings {
  /** The settings that make a key's identity, as one line. */
  readonly identity: string;
  /** false: one tenant for all. */
  readonly hasTenants: boolean;
  readonly scopeParts: readonly ScopePart[];
  /** Every method that any route guards: a key may be reserved under each of them. */
  readonly guardedMethods: readonly string[];
  readonly sweepMs: number;
  /** false: only defaults are at hand, so the sidecars may keep answers for longer than these say. */
  readonly knowsRoutes: boolean;
  policyFor(method: string, path: string): Pick<Policy, 'retentionMs' | 'maxStoredBodyBytes'>;
}
