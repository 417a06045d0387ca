import { connectionNames } from './response.ts';

const names = new Set(['authorization', 'cookie', 'x-api-key']);

/**
 * Whether a request says who asks. An empty header says nothing, and one that `Connection` names does not reach the upstream: taken
 * for credentials, either would be given what the upstream answered to another caller.
 */
export function hasCredentials(rawHeaders: readonly string[]): boolean {
  let named: ReadonlySet<string> | null = null;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string;
    // Lengths first: most headers then cost no lower-casing.
    if (name.length !== 6 && name.length !== 9 && name.length !== 13) continue;
    const lower = name.toLowerCase();
    if (!names.has(lower) || (rawHeaders[i + 1] as string).trim() === '') continue;
    named ??= connectionNames(rawHeaders);
    if (!named.has(lower)) return true;
  }
  return false;
}
