/** What the sidecars are told, as data: the config is written from it, and the checker reads it. */

export type Outcome = 'store' | 'release' | 'unknown';
type Preset = 'standard' | 'payments' | 'stripe';

export const leaseMs = 1_000;
/** Not shorter: on forty idle sidecars the passes of sweeper and census are most of the work. */
export const sweepMs = 500;
/** Long enough that a record past its retention is sometimes taken over and sometimes reaped first. */
const reapMs = 2_000;
/** Longer than a process is kept asleep, shorter than anybody wants to wait for an upstream that vanished. */
const upstreamTimeoutMs = 4_000;
/** Of an attempt: that, and what a settlement may take (src/proxy/reserve.ts). */
export const deadlineMs = upstreamTimeoutMs + 10_000;

export interface Policy {
  readonly outcomes: Preset;
  readonly body: 'canonical' | 'raw';
  readonly waitMs: number;
  readonly retentionMs: number;
  readonly maxStoredBody: string;
  readonly dispatchMark: boolean;
  /** One connection to the upstream: what comes second stands in undici's queue. */
  readonly isNarrow: boolean;
}

const plain: Policy = {
  outcomes: 'standard',
  body: 'canonical',
  waitMs: 300,
  retentionMs: 3_600_000,
  maxStoredBody: '256kb',
  dispatchMark: false,
  isNarrow: false,
};

/** On this path replicas disagree, as they do during a rollout. */
const mixed: readonly Policy[] = [
  { ...plain, waitMs: 0 },
  { ...plain, outcomes: 'payments', body: 'raw' },
  { ...plain, outcomes: 'stripe', waitMs: 1_000 },
];

const paths = ['/plain', '/marked', '/narrow', '/brief', '/large', '/mixed'] as const;
export type Path = (typeof paths)[number];

export function policyOf(path: string, replica: number): Policy {
  switch (path as Path) {
    case '/plain':
      return plain;
    case '/marked':
      return { ...plain, dispatchMark: true };
    case '/narrow':
      return { ...plain, isNarrow: true };
    case '/brief':
      return { ...plain, retentionMs: 1_000 };
    case '/large':
      return { ...plain, maxStoredBody: '1kb' };
    case '/mixed':
      return mixed[replica] ?? plain;
  }
}

/** Only the statuses that the upstream here answers with; written down again on purpose, not taken from src. */
export function outcomeOf(path: string, replica: number, status: number): Outcome {
  if (status < 300) return 'store';
  if (status === 429) return 'release';
  if (status === 500)
    return { standard: 'release', payments: 'unknown', stripe: 'store' }[
      policyOf(path, replica).outcomes
    ] as Outcome;
  throw new Error(`no outcome is written down for status ${status}`);
}

export interface Where {
  readonly upstream: string;
  readonly narrowUpstream: string;
}

export function configOf(replica: number, { upstream, narrowUpstream }: Where): string {
  const routes = paths.map((path) => {
    const policy = policyOf(path, replica);
    return `  - path: ${path}
    outcomes: ${policy.outcomes}
    fingerprint: { body: ${policy.body} }
    inFlight: { wait: ${policy.waitMs}ms }
    retention: ${policy.retentionMs}ms
    maxStoredBody: ${policy.maxStoredBody}
    dispatchMark: ${policy.dispatchMark}
${policy.isNarrow ? `    upstream: { url: ${narrowUpstream}, connections: 1 }\n` : ''}`;
  });
  return `
tenant: { from: { header: X-Tenant } }
lease: ${leaseMs}ms
loops: { sweep: ${sweepMs}ms, reap: ${reapMs}ms }
upstream: { url: ${upstream}, timeout: ${upstreamTimeoutMs}ms, connections: 16 }
store: { poolSize: 6, migrate: auto }
drain: { delay: 0s, max: 5s }
routes:
${routes.join('')}`;
}
