import { countedHeaders } from '../core/fingerprint-headers.ts';
import type { KeyLimits } from '../core/key.ts';
import type { ForwardKey, Policy, UpstreamTarget } from '../core/policy.ts';
import { compileRoutes, type Policies } from '../core/routes.ts';
import type { ScopePart } from '../core/scope.ts';
import type { OutcomeTable } from '../core/settle.ts';
import { OncegateError } from '../errors.ts';
import type { Address } from './address.ts';
import type { Settings } from './schema.ts';

interface StoreOptions {
  /** An embedded store always migrates by itself. */
  readonly migrate: 'check' | 'auto';
  readonly poolSize: number;
  readonly durability: 'strict' | 'relaxed';
}

export type StoreConfig =
  | ({ readonly kind: 'external'; readonly url: string } & StoreOptions)
  | ({ readonly kind: 'embedded'; readonly dataDir: string } & StoreOptions)
  /** Never replaced by an embedded store: a lost DATABASE_URL must not give each replica an empty store of its own. */
  | { readonly kind: 'none' };

/** A policy whose upstream may still lack its origin. */
type PolicyRule = Omit<Policy, 'upstream'> & {
  readonly upstream: Omit<UpstreamTarget, 'origin'> & { readonly origin: string | null };
};

export interface Config {
  readonly listen: { readonly data: Address; readonly ops: Address };
  readonly store: StoreConfig;
  /** In lower case; null: one tenant for all. */
  readonly tenantHeader: string | null;
  readonly scopeParts: readonly ScopePart[];
  /** Header names in lower case. */
  readonly keySources: readonly string[];
  readonly keyLimits: KeyLimits;
  readonly leaseMs: number;
  /** Made into a matcher by compilePolicies. */
  readonly defaults: PolicyRule;
  readonly routes: readonly PolicyRule[];
  /** Routes match paths in any letter case. */
  readonly ignoreCase: boolean;
  /** Processes behind one port. */
  readonly workers: number;
  readonly loops: { readonly sweepMs: number; readonly reapMs: number };
  readonly drain: { readonly delayMs: number; readonly maxMs: number };
  readonly log: { readonly level: Settings['log']['level'] };
  /** The settings that make identity, as one line; kept in the store and compared at start. */
  readonly identity: string;
  readonly warnings: readonly string[];
}

/** `fallbackOrigin` (a demo upstream) is used where no upstream.url was given. */
export function compilePolicies(config: Config, fallbackOrigin: string | null = null): Policies {
  const fill = (rule: PolicyRule): Policy => {
    const origin = rule.upstream.origin ?? fallbackOrigin;
    if (origin !== null) return { ...rule, upstream: { ...rule.upstream, origin } };
    throw new OncegateError(
      'usage',
      'no upstream: give its URL (oncegate serve http://127.0.0.1:3000), or set upstream.url in the config, or ONCEGATE_UPSTREAM_URL',
    );
  };
  return compileRoutes(fill(config.defaults), config.routes.map(fill), config.ignoreCase);
}

export function configOf(settings: Settings, warnings: readonly string[]): Config {
  const { tenant, key, loops, drain } = settings;
  const tenantHeader = tenant.from === 'none' ? null : tenant.from.header;
  return {
    listen: settings.listen,
    store: storeOf(settings.store),
    tenantHeader,
    scopeParts: settings.scope,
    keySources: key.from,
    keyLimits: { minLength: key.minLength, maxLength: key.maxLength },
    leaseMs: settings.lease,
    defaults: ruleOf(settings, null),
    routes: settings.routes.map((route) => ruleOf(settings, route)),
    ignoreCase: settings.routing.ignoreCase,
    workers: settings.workers,
    loops: { sweepMs: loops.sweep, reapMs: loops.reap },
    drain: { delayMs: drain.delay, maxMs: drain.max },
    log: settings.log,
    identity: identityOf(tenantHeader, settings.scope, key.from),
    warnings,
  };
}

/** Key sources are sorted: two that disagree are refused, so their order never changes which key a request has. */
function identityOf(
  tenantHeader: string | null,
  scope: readonly string[],
  keySources: readonly string[],
): string {
  const tenant = tenantHeader === null ? 'none' : `header:${tenantHeader}`;
  const keys = keySources.map((name) => `header:${name}`).sort();
  return `tenant=${tenant} scope=${scope.join(',')} key=${keys.join(',')}`;
}

function storeOf(store: Settings['store']): StoreConfig {
  const { url, embedded, dataDir, migrate, poolSize, durability } = store;
  if (embedded) return { kind: 'embedded', dataDir, migrate: 'auto', poolSize, durability };
  return url === undefined ? { kind: 'none' } : { kind: 'external', url, migrate, poolSize, durability };
}

/** A route's own fields over the defaults; `fingerprint`, `inFlight`, `cors` and `upstream` member by member, `outcomes` as a whole. */
function ruleOf(
  { defaults, upstream: main }: Settings,
  route: Settings['routes'][number] | null,
): PolicyRule {
  const upstream = { ...main, ...route?.upstream };
  const inFlight = { ...defaults.inFlight, ...route?.inFlight };
  const policy = { ...defaults, ...route };
  const fingerprint = { ...defaults.fingerprint, ...route?.fingerprint };
  return {
    route: route?.path ?? 'default',
    mode: policy.mode,
    methods: policy.methods,
    requireKey: policy.requireKey,
    fingerprint: { ...fingerprint, headers: countedHeaders(fingerprint.headers, policy.dialect) },
    inFlight: { waitMs: inFlight.wait, answer: inFlight.answer },
    outcomes: outcomesOf(policy.outcomes),
    retentionMs: policy.retention,
    maxRequestBodyBytes: policy.maxRequestBody,
    maxStoredBodyBytes: policy.maxStoredBody,
    replayStatus: policy.replayStatus,
    forwardKey: forwardKeyOf(policy.forwardKey),
    dispatchMark: policy.dispatchMark,
    dialect: policy.dialect,
    cors: { ...defaults.cors, ...route?.cors },
    upstream: {
      origin: upstream.url ?? null,
      timeoutMs: upstream.timeout,
      connections: upstream.connections,
      host: upstream.host,
    },
  };
}

function outcomesOf(outcomes: Settings['defaults']['outcomes']): OutcomeTable {
  if (typeof outcomes === 'string') return { preset: outcomes, overrides: {} };
  const { preset, ...overrides } = outcomes;
  return { preset, overrides: overrides as OutcomeTable['overrides'] };
}

function forwardKeyOf(forwardKey: Settings['defaults']['forwardKey']): ForwardKey {
  return typeof forwardKey === 'string'
    ? { kind: forwardKey }
    : { kind: 'rename', header: forwardKey.rename };
}
