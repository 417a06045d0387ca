import { type ErrorCode, OncegateError } from '../errors.ts';

export type Group = 'Config' | 'Store' | 'Upstream' | 'Exposure';

/** What one look came to. `advice`: what to do, in one or several lines. */
export type Finding =
  | { readonly level: 'ok'; readonly text: string }
  | { readonly level: 'warning'; readonly text: string; readonly advice: string; readonly blocks?: true }
  | { readonly level: 'error'; readonly text: string; readonly advice: string; readonly exitCode: number }
  | { readonly level: 'skipped'; readonly text: string };

export type Check = Finding & { readonly group: Group; readonly name: string };

export function ok(text: string): Finding {
  return { level: 'ok', text };
}

export function warning(text: string, advice: string): Finding {
  return { level: 'warning', text, advice };
}

/** A warning after which nothing that builds on it can be looked at. */
export function blocking(text: string, advice: string): Finding {
  return { level: 'warning', text, advice, blocks: true };
}

/** `code`: what `serve` would end with; without one it would start, and fail at its work. */
export function failure(text: string, advice: string, code?: ErrorCode): Finding {
  const exitCode = code === undefined ? 1 : new OncegateError(code, text).exitCode;
  return { level: 'error', text, advice, exitCode };
}

export function skipped(text: string): Finding {
  return { level: 'skipped', text };
}
