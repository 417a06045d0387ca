// Route patterns, and the form of a path in which they are compared.
//
//   /v1/charges      this path
//   /v1/*/refund     `*` stands for exactly one segment, not empty
//   /orders/*        /orders itself and everything below it (as a prefix of a Kubernetes Ingress)
//
// Compared is one spelling of each path: as RFC 3986's normal form (section 6.2.2), with escapes of unreserved characters decoded, hex
// in upper case and dot segments resolved; but every other character is escaped, for servers decode before they route; and without `;`
// parameters. So `/v1/%63harges` and `/v1/charges;x` do not escape the policy of `/v1/charges`, nor `/pay%3Acapture` that of `/pay:capture`.
// A trailing slash does not matter: most frameworks route both spellings to one handler. Letter case matters unless `ignoreCase` is on
// (routes.ts).
// Paths that servers read differently (encoded or double slashes) are refused before, see ambiguousPath in request.ts.
// Only policy is chosen this way: scope, fingerprint and the forwarded target keep the raw path.

export interface Pattern {
  /** null stands for `*`. */
  readonly segments: readonly (string | null)[];
  /** Ends in `/*`. */
  readonly below: boolean;
}

/** `pattern` has no fault (see patternFault). */
export function parsePattern(pattern: string, ignoreCase = false): Pattern {
  const below = pattern.endsWith('/*');
  const normal = normalPath(below ? pattern.slice(0, -2) : pattern);
  const path = ignoreCase ? foldCase(normal) : normal;
  const segments = path === '/' ? [] : path.slice(1).split('/');
  return { segments: segments.map((segment) => (segment === '*' ? null : segment)), below };
}

/** One text for all spellings of a pattern: two routes with the same one are the same route. */
export function patternId(pattern: string, ignoreCase = false): string {
  const { segments, below } = parsePattern(pattern, ignoreCase);
  return `/${[...segments.map((segment) => segment ?? '*'), ...(below ? ['*'] : [])].join('/')}`;
}

/** What is wrong with a pattern and what to write instead, or null. */
export function patternFault(pattern: string): string | null {
  if (!pattern.startsWith('/')) return `must start with a slash; write /${pattern}`;
  if (/[?#]/.test(pattern))
    return `holds a query or fragment; write the path alone: ${pattern.replace(/[?#].*/s, '')}`;
  if (/[^\x21-\x7e]|%(?![0-9a-f]{2})/i.test(pattern)) {
    return 'holds a character that no request path has; write it percent-encoded, for instance /caf%C3%A9';
  }
  if (/\\|%2f|%5c/i.test(pattern))
    return 'holds an encoded slash or a backslash; write plain segments between slashes';
  if (pattern.includes('//')) return `has an empty segment; write ${pattern.replaceAll(/\/{2,}/g, '/')}`;
  if (pattern.length > 1 && pattern.endsWith('/')) {
    return `ends in a slash; write ${pattern.slice(0, -1)} for this path or ${pattern}* for it and all below`;
  }
  const segments = pattern.replaceAll(/%2e/gi, '.').split('/');
  if (segments.some((segment) => segment === '.' || segment === '..'))
    return 'has a dot segment; write the resolved path';
  if (segments.some((segment) => segment.includes('*') && segment !== '*')) {
    return 'has * inside a segment; write * as a whole segment, as in /v1/*/refund or /v1/*';
  }
  return null;
}

/** One spelling of a path, without parameters and trailing slash. `path` starts with a slash. */
export function normalPath(path: string): string {
  return resolveDots(withoutParameters(oneSpelling(path)));
}

/** One text for every letter case of a path, also of letters that are escaped. `path` is in normal form. */
export function foldCase(path: string): string {
  return path.includes('%') ? path.split('/').map(foldSegment).join('/') : withoutCase(path);
}

function foldSegment(segment: string): string {
  if (!segment.includes('%')) return withoutCase(segment);
  try {
    const folded = oneSpelling(encodeURIComponent(withoutCase(decodeURIComponent(segment))));
    // Bare, it would stand for a whole segment.
    return folded.replaceAll('*', '%2A');
  } catch {
    // Not UTF-8: only its ASCII has a case that servers agree on.
    return segment.toLowerCase();
  }
}

/** Upper case first: some letters have no lower case of their own and share the upper one. */
function withoutCase(text: string): string {
  return text.toUpperCase().toLowerCase();
}

/** But for `*`, which patterns have for themselves. A character is one byte, as Node gives them. */
function oneSpelling(path: string): string {
  return path.replaceAll(/%([0-9a-f]{2})|[^\w.~/*-]/gi, (found, hex?: string) => {
    const code = hex === undefined ? found.charCodeAt(0) : Number.parseInt(hex, 16);
    const char = String.fromCharCode(code);
    return /[\w.~-]/.test(char) ? char : `%${code.toString(16).toUpperCase().padStart(2, '0')}`;
  });
}

/** Servlet containers route `/v1/charges;x=1` to `/v1/charges`: it must not slip past that path's policy. */
function withoutParameters(path: string): string {
  return path.replaceAll(/%3B[^/]*/g, '');
}

function resolveDots(path: string): string {
  const kept: string[] = [];
  for (const segment of path.slice(1).split('/')) {
    if (segment === '..') kept.pop();
    else if (segment !== '.') kept.push(segment);
  }
  if (kept.at(-1) === '') kept.pop();
  return `/${kept.join('/')}`;
}

/** Whether the other patterns leave nothing for this one: `/a` and `/a/*` + `/*` together are all of `/a/*`, and both win over it. */
export function isShadowed(pattern: string, others: readonly string[], ignoreCase = false): boolean {
  const id = patternId(pattern, ignoreCase);
  if (!id.endsWith('/*')) return false;
  const exact = id.slice(0, -2) || '/';
  const ids = new Set(others.map((other) => patternId(other, ignoreCase)));
  // A pattern that ends in `*` is never of one path alone.
  return !exact.endsWith('/*') && ids.has(exact) && ids.has(`${id}/*`);
}

/** The first segment that other routers would read as a parameter, and that is taken literally here; or null. */
export function templateSegment(pattern: string): string | null {
  return pattern.split('/').find((segment) => /^(:.+|\{.*\}|<.*>|\$\w+)$/.test(segment)) ?? null;
}
