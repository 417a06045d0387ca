/** Thrown errors of ours: stable codes, the exit code each ends the process with. Client-visible problems are core/problem.ts. */
const exitCodes = {
  usage: 2,
  config_invalid: 2,
  identity_changed: 2,
  instances_live: 1,
  store_missing: 2,
  schema_mismatch: 3,
  store_unreachable: 4,
  store_refused: 4,
  store_not_durable: 2,
  store_unavailable: 4,
  port_in_use: 1,
  embedded_failed: 1,
} as const;

export type ErrorCode = keyof typeof exitCodes;

export class OncegateError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'OncegateError';
    this.code = code;
  }

  get exitCode(): number {
    return exitCodes[this.code];
  }
}

/** Whatever was thrown, as an Error: `catch` may be handed anything. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
