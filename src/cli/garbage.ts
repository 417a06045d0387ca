import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Milliseconds. Shorter, and V8 would not yet believe that the need is over, and keep the room for new objects. */
const lookMs = 15_000;
/** Share of a processor below which nobody is served. */
const idleShare = 0.02;

/**
 * V8 gathers short-lived objects with as many threads as there are processors. What a request leaves is too little for that: they
 * spend more on waiting for each other than on the work, and in a container with half a processor there is nothing to share out.
 */
export function collectAlone(): void {
  setFlagsFromString('--no-parallel-scavenge');
}

/**
 * V8 collects what a start or a burst left behind only when it next needs room, which in an idle sidecar is never: 16 of 93 MB.
 * So a process that has become idle collects once, which takes some 30 ms.
 */
export function giveBackWhenIdle(): void {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  let before = process.cpuUsage();
  let isGivenBack = false;
  setInterval(() => {
    const { user, system } = process.cpuUsage(before);
    before = process.cpuUsage();
    const isIdle = (user + system) / 1000 < lookMs * idleShare;
    if (isIdle && !isGivenBack) collect();
    isGivenBack = isIdle;
  }, lookMs).unref();
}
