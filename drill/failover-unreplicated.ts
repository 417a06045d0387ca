import type { SidecarProcess } from '../test/helpers/sidecar.ts';
import { until } from '../test/helpers/until.ts';
import { type Final, persist, tryOnce } from './call.ts';
import { type Finding, finding } from './drill.ts';
import type { Pair } from './failover-pair.ts';
import type { HoldingUpstream } from './holding-upstream.ts';
import { describe } from './load.ts';

interface Scene {
  readonly pair: Pair;
  readonly upstream: HoldingUpstream;
  /** The first runs the key and dies; the second is asked for it. */
  readonly sidecars: readonly [SidecarProcess, SidecarProcess];
}

const key = 'unreplicated';
const patienceMs = 20_000;
/** Milliseconds; past its lease the other sidecar answers nobody. */
const lookMs = 1_500;

/**
 * The one schedule that chance hardly finds. An answer is committed while nothing reaches the standby, and its connection is
 * ended: the record is now visible, and on no other server. Whoever is asked for it then must not show it, for primary and
 * sidecar may be lost together, and with them the answer.
 */
export async function unreplicatedAnswer({ pair, upstream, sidecars }: Scene): Promise<Finding> {
  const [owner, other] = sidecars;
  // The sequence of epochs is written ahead: without this the other's look at the key would wait for the standby too.
  for (const { dataUrl } of sidecars)
    await persist({ urls: [dataUrl], key: `${key}-before`, withinMs: patienceMs });
  upstream.hold(key);
  const first = tryOnce(owner.dataUrl, key);
  const answer = await upstream.held(key);
  pair.partition();
  answer();
  await until('the completion waits for the standby', () => pair.hasWaitingCommit());
  await pair.endWaiting();
  const seen = await persist({ urls: [other.dataUrl], key, withinMs: lookMs });
  owner.kill('SIGKILL');
  await pair.failOver({ how: 'killed', partitionMs: 0, connections: 'left alone', awayMs: 0 });
  await first;
  const promise = 'an answer that no standby has is shown to nobody';
  if (seen.kind !== 'answered')
    return finding(
      promise,
      [],
      `asked for it, the other sidecar ${seen.kind === 'gave_up' ? 'refused' : 'said unknown'}`,
    );
  const now: Final = await persist({ urls: [other.dataUrl], key, withinMs: patienceMs });
  const isKept = describe(now) === seen.bytes;
  const fault = `another sidecar replayed ${seen.bytes}; after the failover a retry gets ${describe(now)}`;
  return finding(promise, isKept ? [] : [fault], 'it was shown, and is still there');
}
