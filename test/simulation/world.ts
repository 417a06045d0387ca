import type { Policy } from '../../src/core/policy.ts';
import type { PresetName } from '../../src/core/settle.ts';
import type { Choices } from './choices.ts';
import type { Clockwork } from './clockwork.ts';
import type { Ledger } from './ledger.ts';
import type { SimServer } from './sim-server.ts';

/** What a schedule is played with. */
export interface Settings {
  readonly preset: PresetName;
  readonly leaseMs: number;
  readonly retentionMs: number;
  readonly dispatchMark: boolean;
  readonly waitMs: number;
  readonly hasStandby: boolean;
  /** Shares of statements, of upstream calls, that do not go well. */
  readonly storeTrouble: number;
  readonly upstreamTrouble: number;
}

export interface World {
  readonly choices: Choices;
  readonly clock: Clockwork;
  readonly server: SimServer;
  readonly ledger: Ledger;
  readonly settings: Settings;
  readonly policy: Policy;
  /** Says that a rare state was seen. */
  readonly saw: (what: string) => void;
  /** A line of the trace. */
  readonly note: (line: string) => void;
}

const upstreamTimeoutMs = 8_000;
export const sweepMs = 10_000;
export const reapMs = 20_000;
export const maxStoredBodyBytes = 300;

export function drawSettings(choices: Choices): Settings {
  const isQuiet = choices.chance(0.25);
  return {
    preset: choices.pick(['standard', 'payments', 'stripe'] as const),
    // Longer and shorter than the deadline of an attempt.
    leaseMs: choices.pick([30_000, 12_000]),
    retentionMs: choices.pick([600_000, 15_000]),
    dispatchMark: choices.chance(0.3),
    waitMs: choices.pick([1_000, 3_000, 0]),
    hasStandby: choices.chance(0.4),
    storeTrouble: isQuiet ? 0 : choices.pick([0, 0.05, 0.25]),
    upstreamTrouble: isQuiet ? 0 : choices.pick([0.1, 0.5]),
  };
}

export function policyOf(settings: Settings): Policy {
  return {
    route: 'default',
    mode: 'enforce',
    methods: ['POST'],
    requireKey: true,
    fingerprint: { body: 'raw', ignore: [], headers: [] },
    inFlight: { waitMs: settings.waitMs, answer: 409 },
    outcomes: { preset: settings.preset, overrides: {} },
    retentionMs: settings.retentionMs,
    maxRequestBodyBytes: 10_000,
    maxStoredBodyBytes,
    replayStatus: 'original',
    forwardKey: { kind: 'keep' },
    dispatchMark: settings.dispatchMark,
    dialect: 'ietf',
    cors: { origins: [] },
    upstream: { origin: 'http://upstream', timeoutMs: upstreamTimeoutMs, connections: 8, host: 'preserve' },
  };
}

/** Milliseconds that something takes on its way: mostly none, at times long enough to be overtaken. */
export function drawDelayMs(choices: Choices): number {
  if (choices.isCalm) return 1;
  return choices.weighted([
    [70, () => 1],
    [20, () => choices.between(2, 60)],
    [8, () => choices.between(100, 1_900)],
    [2, () => choices.between(2_000, 6_000)],
  ])();
}
