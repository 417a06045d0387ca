import type { Policy } from './policy.ts';
import { foldCase, normalPath, type Pattern, parsePattern, patternId } from './route-pattern.ts';
import { createStricter, type Stricter } from './stricter-policy.ts';

/**
 * Which policy a request gets.
 *
 * The path picks the route, the most specific one; the order of the list never matters. Only then does the method count:
 * a request is guarded if the route's mode is `enforce` and its methods name the method, else it passes through to that
 * route's upstream. A method that the route does not name does not fall back to a wider route or to the defaults.
 * A request that an override header makes another method's is guarded if either method is.
 * Several routes may share one path if their methods are disjoint and their upstream is the same (config checks both).
 *
 * Most specific: an exact path; then more literal segments; then more segments; then no trailing `/*`; then the literal
 * that comes first. Two different patterns that match one path always differ in one of these.
 */
export interface Policies {
  readonly defaults: Policy;
  /** The defaults and every route's policy: for whoever opens a pool per upstream. */
  readonly all: readonly Policy[];
  /** `rawPath`: the origin-form target without its query, as it came. Not starting with a slash: the defaults. */
  policyFor(method: string, rawPath: string): Policy;
  /**
   * The policy of a request that may run as any of `methods`, its own first: one that guards if any of their policies does, the
   * stricter of several.
   */
  policyForAny(methods: readonly [string, ...string[]], rawPath: string): Policy;
}

export function isGuarded(policy: Policy, method: string): boolean {
  return policy.mode === 'enforce' && policy.methods.includes(method);
}

/** Routes of one pattern; more than one only where methods split them. */
interface Entry extends Pattern {
  readonly policies: Policy[];
}

/** A path whose normal form may differ: a character that is or would be escaped, a dot segment, a trailing slash. */
const unusual = /[^\w.~/-]|\/\.|.\/$/;

/** `routes`: each policy's `route` is its pattern, without fault. `ignoreCase`: a path matches in any letter case. */
export function compileRoutes(defaults: Policy, routes: readonly Policy[], ignoreCase = false): Policies {
  const { exact, wild } = entriesOf(routes, ignoreCase);

  const elsewhere = [defaults];
  const stricter = createStricter();

  function policiesAt(rawPath: string): readonly Policy[] {
    if (!rawPath.startsWith('/')) return elsewhere;
    const normal = unusual.test(rawPath) ? normalPath(rawPath) : rawPath;
    const path = ignoreCase ? foldCase(normal) : normal;
    const entry = exact.get(path);
    if (entry !== undefined) return entry.policies;
    for (const candidate of wild) if (matches(candidate, path)) return candidate.policies;
    return elsewhere;
  }

  return {
    defaults,
    all: [defaults, ...routes],
    policyFor: (method, rawPath) => pick(policiesAt(rawPath), method),
    policyForAny: (methods, rawPath) => pickForAny(stricter, policiesAt(rawPath), methods),
  };
}

function entriesOf(
  routes: readonly Policy[],
  ignoreCase: boolean,
): { exact: Map<string, Entry>; wild: Entry[] } {
  const entries = new Map<string, Entry>();
  for (const policy of routes) {
    const id = patternId(policy.route, ignoreCase);
    const entry = entries.get(id);
    if (entry === undefined)
      entries.set(id, { ...parsePattern(policy.route, ignoreCase), policies: [policy] });
    else entry.policies.push(policy);
  }
  const isExact = (entry: Entry): boolean => !entry.below && !entry.segments.includes(null);
  return {
    exact: new Map([...entries].filter(([, entry]) => isExact(entry))),
    wild: [...entries.values()].filter((entry) => !isExact(entry)).sort(moreSpecificFirst),
  };
}

function moreSpecificFirst(a: Pattern, b: Pattern): number {
  return (
    literals(b) - literals(a) ||
    b.segments.length - a.segments.length ||
    Number(a.below) - Number(b.below) ||
    compareText(shape(a), shape(b))
  );
}

function literals(pattern: Pattern): number {
  return pattern.segments.filter((segment) => segment !== null).length;
}

/** `l` sorts before `w`: at the first difference the literal wins. */
function shape(pattern: Pattern): string {
  return pattern.segments.map((segment) => (segment === null ? 'w' : 'l')).join('');
}

function compareText(a: string, b: string): number {
  return Number(a > b) - Number(a < b);
}

/** Walks the path by index: an ordinary request makes no garbage here. */
function matches(pattern: Pattern, path: string): boolean {
  let slash = 0;
  for (const segment of pattern.segments) {
    const start = slash + 1;
    const next = path.indexOf('/', start);
    const end = next === -1 ? path.length : next;
    const fits =
      segment === null ? end > start : end - start === segment.length && path.startsWith(segment, start);
    if (!fits) return false;
    slash = end;
  }
  return pattern.below || slash === path.length;
}

function pickForAny(
  stricter: Stricter,
  policies: readonly Policy[],
  methods: readonly [string, ...string[]],
): Policy {
  const guards = policies.filter((policy) => methods.some((method) => isGuarded(policy, method)));
  // The request's own method first.
  const own = pick(policies, methods[0]);
  const first = guards.includes(own) ? own : guards[0];
  if (first === undefined) return own;
  return guards.filter((policy) => policy !== first).reduce(stricter, first);
}

/** A method that no route of this path names is not guarded by any of them, and they share their upstream: the first will do. */
function pick(policies: readonly Policy[], method: string): Policy {
  for (const policy of policies) if (policy.methods.includes(method)) return policy;
  return policies[0] as Policy;
}
