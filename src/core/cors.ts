/**
 * Which pages of other origins may read an answer (Fetch standard, CORS protocol). Header lists are flat, as in Node.
 * Preflights are no matter of ours: they pass through to the upstream.
 */
export interface Cors {
  /** As browsers send them in Origin, byte for byte. `*`: every other origin, without credentials. */
  readonly origins: readonly string[];
}

const allowOrigin = 'access-control-allow-origin';
const allowCredentials = 'access-control-allow-credentials';

/** Beside a few safe ones a page sees only the headers that are listed. */
const exposedOnAnswers = [
  'Access-Control-Expose-Headers',
  'Idempotency-Status, Idempotent-Replayed, Idempotency-Expires, X-Request-Id, Retry-After',
] as const;
const exposedOnProblems = [
  'Access-Control-Expose-Headers',
  'Idempotency-Status, X-Request-Id, Request-Id, Retry-After, Stripe-Should-Retry, X-Should-Retry',
] as const;
const varies = ['Vary', 'Origin'] as const;
const none: readonly string[] = [];

/**
 * What a problem carries. Also with credentials, for an origin that is named: a problem holds nothing of anybody's, and a page
 * that sends cookies could not read it otherwise.
 */
export function problemGrant(cors: Cors, origin: string | undefined): readonly string[] {
  if (cors.origins.length === 0) return none;
  const allowed = allowedBy(cors, origin);
  if (allowed === null) return varies;
  const headers = ['Access-Control-Allow-Origin', allowed, ...exposedOnProblems, ...varies];
  return allowed === '*' ? headers : [...headers, 'Access-Control-Allow-Credentials', 'true'];
}

/** What goes with an answer of the upstream that some page may read: a line of its own, to be joined with the upstream's. */
export function exposedWith(headers: readonly string[]): readonly string[] {
  return grantedTo(headers).length === 0 ? none : exposedOnAnswers;
}

/**
 * A stored answer's headers for whoever asks again. Its grant was made for the origin of the first request: repeated are one for
 * all and one for this very origin; any other is replaced if `cors` allows this origin, else left out. Whether credentials may
 * be sent stays the upstream's word. An answer without grant gets none.
 */
export function grantedAgain(
  headers: readonly string[],
  cors: Cors,
  origin: string | undefined,
): readonly string[] {
  const granted = grantedTo(headers);
  if (granted.every((one) => one === '*' || one === origin)) return headers;
  const allowed = allowedBy(cors, origin);
  const kept: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] as string;
    if (isNamed(name, allowOrigin)) continue;
    if ((allowed === null || allowed === '*') && isNamed(name, allowCredentials)) continue;
    kept.push(name, headers[i + 1] as string);
  }
  if (allowed !== null) kept.push('Access-Control-Allow-Origin', allowed);
  kept.push(...varies);
  return kept;
}

function allowedBy({ origins }: Cors, origin: string | undefined): string | null {
  if (origin === undefined) return null;
  if (origins.includes(origin)) return origin;
  return origins.includes('*') ? '*' : null;
}

function grantedTo(headers: readonly string[]): readonly string[] {
  let granted: string[] | null = null;
  for (let i = 0; i < headers.length; i += 2) {
    if (!isNamed(headers[i] as string, allowOrigin)) continue;
    granted ??= [];
    granted.push(headers[i + 1] as string);
  }
  return granted ?? none;
}

/** Lengths first: most headers then cost no lower-casing. */
function isNamed(name: string, wanted: string): boolean {
  return name.length === wanted.length && name.toLowerCase() === wanted;
}
