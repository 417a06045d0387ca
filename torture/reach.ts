import { setTimeout as delay } from 'node:timers/promises';
import { trapFor } from './cuts.ts';
import type { Notes } from './notes.ts';
import type { Replica } from './replica.ts';
import { setUp } from './scene.ts';
import type { Struck } from './strike.ts';

/** Milliseconds to get to a point; a reaper takes the longest. */
const reachMs = 8_000;
/** After the answer: where the request has not been by then it went another way. */
const missedMs = 500;
/** Half of what the point's request or answer has, head and all. */
const halfBytes = 30_000;

/** Leads a sidecar to the point of the run. null: nobody got there in time. */
export async function reach(notes: Notes): Promise<Struck | null> {
  const { plan } = notes;
  const setting = await setUp(notes);
  if (setting === null) return null;
  const { candidates, begin } = setting;
  const victim = candidates[0] as Replica;
  const { site } = plan.point;
  const free = { victim, letGo: () => {}, trap: null };
  switch (site.kind) {
    case 'drain':
      await victim.drain();
      return { notes, ...free, asked: undefined };
    case 'upstream line':
    case 'client line': {
      const spent =
        site.kind === 'upstream line'
          ? victim.lines.upstream.limit('toServer', halfBytes)
          : victim.lines.clients.limit('toClient', halfBytes);
      const asked = await begin();
      return (await inTime(spent.then(() => true))) ? { notes, ...free, asked } : null;
    }
    case 'inside': {
      const armed = await Promise.all(
        candidates.map(async (replica) => {
          const { reached } = await replica.arm(site);
          return { replica, reached: reached.then(() => replica) };
        }),
      );
      const trap = trapFor(notes, victim);
      const asked = await begin();
      const passed = asked === undefined ? [] : [asked.done.then(() => delay(missedMs, null))];
      const first = await inTime(Promise.race([...armed.map(({ reached }) => reached), ...passed]));
      for (const { replica, reached } of armed) {
        if (replica === first) continue;
        void reached.then(() => replica.letGo());
        await replica.arm({ point: 'none', detail: '' });
      }
      if (first === null) trap?.disarm();
      return first === null ? null : { notes, victim: first, asked, letGo: () => first.letGo(), trap };
    }
  }
}

async function inTime<T>(work: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => (timer = setTimeout(resolve, reachMs, null)));
  const result = await Promise.race([work, late]);
  clearTimeout(timer);
  return result;
}
