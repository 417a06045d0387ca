import { readsAs } from '../core/fold-name.ts';
import { patternId } from '../core/route-pattern.ts';
import type { Address } from './address.ts';
import type { Path } from './fault.ts';
import type { Settings } from './schema.ts';

export interface Finding {
  readonly path: Path;
  readonly text: string;
}

/** What no single field can tell. Sections that have faults of their own are absent. */
export function crossChecks(settings: Partial<Settings>): Finding[] {
  return [
    ...listenFindings(settings),
    ...headerFindings(settings),
    ...countedHeaderFindings(settings),
    ...routeFindings(settings),
    ...workerFindings(settings),
  ];
}

function workerFindings({ workers, store }: Partial<Settings>): Finding[] {
  if (workers === undefined || workers === 1 || store?.embedded !== true) return [];
  const text = 'is above 1, and an embedded PostgreSQL is of one process alone; write 1, or give store.url';
  return [{ path: ['workers'], text }];
}

function listenFindings({ listen, upstream }: Partial<Settings>): Finding[] {
  const findings: Finding[] = [];
  if (listen === undefined) return findings;
  const { data, ops } = listen;
  if (data.port !== 0 && overlap(data, ops)) {
    findings.push({ path: ['listen', 'ops'], text: 'has the port of listen.data; write another port' });
  }
  // A sidecar that proxies to itself answers every request by running out of sockets.
  const target = upstream?.url === undefined ? null : localTarget(new URL(upstream.url));
  if (target !== null && overlap(data, target)) {
    findings.push({
      path: ['upstream', 'url'],
      text: 'is our own listen.data; write the port of the service behind it',
    });
  }
  return findings;
}

function localTarget(url: URL): Address | null {
  const host = url.hostname.replaceAll(/[[\]]/g, '').replace('localhost', '127.0.0.1');
  const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80);
  return /^(127\..*|0\.0\.0\.0|::1?)$/.test(host) ? { host, port } : null;
}

function overlap(a: Address, b: Address): boolean {
  const isAny = ({ host }: Address): boolean => host === '0.0.0.0' || host === '::';
  return a.port === b.port && (a.host === b.host || isAny(a) || isAny(b));
}

/** The tenant's header decides who sees a key: nothing else may speak through it. */
function headerFindings({ tenant, key, defaults, routes }: Partial<Settings>): Finding[] {
  if (tenant === undefined || tenant.from === 'none') return [];
  const { header } = tenant.from;
  const findings: Finding[] = [];
  const isTenant = (forwardKey: Settings['defaults']['forwardKey'] | undefined): boolean =>
    typeof forwardKey === 'object' && readsAs(forwardKey.rename, header);
  const text = `is the header that names the tenant; write another one`;
  const from = key?.from.findIndex((source) => readsAs(source, header)) ?? -1;
  if (from !== -1) findings.push({ path: ['key', 'from', from], text });
  if (isTenant(defaults?.forwardKey)) findings.push({ path: ['defaults', 'forwardKey', 'rename'], text });
  for (const [i, route] of (routes ?? []).entries()) {
    if (isTenant(route.forwardKey)) findings.push({ path: ['routes', i, 'forwardKey', 'rename'], text });
  }
  return findings;
}

/** The key may come quoted in one try and bare in the next. */
function countedHeaderFindings({ key, defaults, routes }: Partial<Settings>): Finding[] {
  const policies = [
    { path: ['defaults'] as Path, policy: defaults },
    ...(routes ?? []).map((policy, i) => ({ path: ['routes', i] as Path, policy })),
  ];
  return policies.flatMap(({ path, policy }) =>
    (policy?.fingerprint?.headers ?? []).flatMap((header, i) =>
      key?.from.some((source) => readsAs(source, header)) === true
        ? [
            {
              path: [...path, 'fingerprint', 'headers', i],
              text: 'carries the key, which counts anyway; remove it',
            },
          ]
        : [],
    ),
  );
}

function routeFindings({ defaults, routes, routing, upstream }: Partial<Settings>): Finding[] {
  const findings: Finding[] = [];
  if (routes === undefined) return findings;
  const earlier = new Map<string, number[]>();
  for (const [i, route] of routes.entries()) {
    const id = patternId(route.path, routing?.ignoreCase);
    const twins = earlier.get(id) ?? [];
    earlier.set(id, [...twins, i]);
    const methods = route.methods ?? defaults?.methods ?? [];
    for (const j of twins) {
      const twin = routes[j];
      const shared = (twin?.methods ?? defaults?.methods ?? []).filter((method) => methods.includes(method));
      if (shared.length > 0) {
        const text = `is also routes[${j}], both for ${shared.join(', ')}; merge them, or give each its own methods`;
        findings.push({ path: ['routes', i, 'path'], text });
      } else if (
        JSON.stringify({ ...upstream, ...route.upstream }) !==
        JSON.stringify({ ...upstream, ...twin?.upstream })
      ) {
        const text = `differs from that of routes[${j}], which has the same path; write the same, for other methods must go somewhere`;
        findings.push({ path: ['routes', i, route.upstream === undefined ? 'path' : 'upstream'], text });
      }
    }
  }
  return findings;
}
