import { isShadowed, patternId, templateSegment } from '../core/route-pattern.ts';
import type { Finding } from './checks.ts';
import { duration } from './duration.ts';
import type { Path } from './fault.ts';
import type { Settings } from './schema.ts';

/** An answer is of little use to clients that retry from a queue after their own outage. */
const shortRetentionMs = duration.parse('1h');

/** What changes state and is not meant to be repeated: RFC 9110 calls PUT and DELETE idempotent, these not. */
const unsafeMethods = ['POST', 'PATCH'] as const;

/** Legal settings that are risky. `isWritten`: someone chose the value; a default is not pointed at. */
export function warningsOf(settings: Settings, isWritten: (path: Path) => boolean): Finding[] {
  const { defaults, routes } = settings;
  return [
    ...policyWarnings(['defaults'], defaults, settings),
    ...routes.flatMap((route, i) => [
      ...routeWarnings(settings, i),
      ...policyWarnings(['routes', i], withTwins(route, settings), settings),
    ]),
    ...guardWarnings(settings),
    ...drainWarnings(settings, isWritten),
    ...storeWarnings(settings),
  ];
}

type Policy = Omit<Settings['routes'][number], 'path'>;

/** Only of what this policy says itself: what a route takes from the defaults is told there. */
function policyWarnings(path: Path, policy: Policy, { defaults }: Settings): Finding[] {
  const { retention, fingerprint, requireKey, methods } = policy;
  const findings: Finding[] = [];
  const mode = policy.mode ?? defaults.mode;
  const add = (field: Path, text: string) => findings.push({ path: [...path, ...field], text });
  if (retention !== undefined && retention < shortRetentionMs) {
    add(['retention'], `is ${duration.format(retention)}: a retry after that runs again; write 1h or more`);
  }
  const body = fingerprint?.body ?? defaults.fingerprint.body;
  if (body === 'raw' && (fingerprint?.ignore?.length ?? 0) > 0) {
    add(['fingerprint', 'ignore'], 'has no effect with body: raw; remove one of them');
  }
  if (mode !== 'enforce') return findings;
  const unguarded = methods === undefined ? [] : unsafeMethods.filter((method) => !methods.includes(method));
  if (unguarded.length > 0) {
    const names = unguarded.join(' and ');
    add(
      ['methods'],
      `${unguarded.length === 1 ? 'leaves' : 'leave'} ${names} unguarded here: a retry of it runs again; add ${names}`,
    );
  }
  if (requireKey === false) {
    add(['requireKey'], 'is false: a request without key passes through unguarded, and its retry runs again');
  }
  return findings;
}

/** Several routes may share a path, each with methods of its own: together they guard it. */
function withTwins(route: Settings['routes'][number], { defaults, routes, routing }: Settings): Policy {
  if (route.methods === undefined) return route;
  const idOf = (path: string) => patternId(path, routing.ignoreCase);
  const twins = routes.filter(
    ({ path, mode }) => idOf(path) === idOf(route.path) && (mode ?? defaults.mode) === 'enforce',
  );
  return { ...route, methods: twins.flatMap(({ methods }) => methods ?? defaults.methods) };
}

function routeWarnings({ routes, routing }: Settings, i: number): Finding[] {
  const pattern = routes[i]?.path ?? '/';
  const path: Path = ['routes', i, 'path'];
  const template = templateSegment(pattern);
  if (template !== null) {
    const text = `takes ${template} literally, so it will hardly match; write ${pattern.replace(template, '*')}`;
    return [{ path, text }];
  }
  const others = routes.filter((_, j) => j !== i).map((route) => route.path);
  if (!isShadowed(pattern, others, routing.ignoreCase)) return [];
  return [
    {
      path,
      text: `can never match: ${pattern.slice(0, -2) || '/'} and ${pattern}/* are more specific and leave nothing; remove it`,
    },
  ];
}

/** `mode: off` on a route is said on purpose; off everywhere else lets through whatever no route was thought to match. */
function guardWarnings({ defaults, routes, routing }: Settings): Finding[] {
  if (defaults.mode === 'enforce') return [];
  const path: Path = ['defaults', 'mode'];
  if (!routes.some((route) => route.mode === 'enforce')) {
    const text = 'is off and no route enforces: nothing is guarded; write enforce where retries must be safe';
    return [{ path, text }];
  }
  const example = routing.ignoreCase ? '' : ', for instance that of a route in another letter case';
  const text = `is off: a path that no route matches is not guarded${example}; write enforce, and mode: off on routes that need no keys`;
  return [{ path, text }];
}

function drainWarnings({ drain, upstream, routes }: Settings, isWritten: (path: Path) => boolean): Finding[] {
  const timeouts = [
    { path: ['upstream', 'timeout'] as Path, value: upstream.timeout },
    ...routes.map((route, i) => ({
      path: ['routes', i, 'upstream', 'timeout'],
      value: route.upstream?.timeout ?? 0,
    })),
  ];
  const longest = timeouts.reduce((a, b) => (b.value > a.value ? b : a));
  if (drain.max >= longest.value) return [];
  const [max, timeout] = [duration.format(drain.max), duration.format(longest.value)];
  const path: Path = isWritten(['drain', 'max']) ? ['drain', 'max'] : longest.path;
  const text = `drain.max (${max}) is shorter than the upstream's timeout (${timeout}): a restart may leave outcomes unknown; write drain.max above ${timeout}`;
  return [{ path, text }];
}

const loopback = /^(127\..*|::1|localhost)$/;

function storeWarnings({ store, listen }: Settings): Finding[] {
  const findings: Finding[] = [];
  if (store.durability === 'relaxed') {
    const text =
      'is relaxed: a crash of PostgreSQL may lose an acknowledged key, and its retry runs again; write strict';
    findings.push({ path: ['store', 'durability'], text });
  }
  if (store.embedded && !loopback.test(listen.data.host)) {
    const text =
      'is for trying it out: a second replica would have a store of its own and run retries again; write store.url';
    findings.push({ path: ['store', 'embedded'], text });
  }
  return findings;
}
