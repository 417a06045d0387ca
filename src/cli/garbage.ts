import { PerformanceObserver } from 'node:perf_hooks';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Milliseconds. Any shorter, and V8 keeps its enlarged young generation. */
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
 * Percent by which old objects may outgrow what was alive at the last full collection. V8 lets them grow up to fourfold, and requests
 * that were under way at a collection of new ones are soon garbage among them: 250 MB at full speed instead of 160.
 */
export function collectOldSooner(): void {
  setFlagsFromString('--heap-growing-percent=50');
}

/** Both halves together. */
const newSpaceBytes = 32 * 1_048_576;

/**
 * From Node.js 24 on V8 lets the room for new objects grow to 128 MB, which is memory and no speed here. At run time only the factor
 * by which it grows can be set: 1 once it is large enough. It shrinks when the process is idle, so that this is looked at after
 * every collection.
 */
export function limitNewSpace(): void {
  let mayGrow = true;
  const observer = new PerformanceObserver(() => {
    const space = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space');
    const isSmall = (space?.space_size ?? 0) < newSpaceBytes;
    if (isSmall === mayGrow) return;
    mayGrow = isSmall;
    setFlagsFromString(`--semi-space-growth-factor=${mayGrow ? 2 : 1}`);
  });
  observer.observe({ entryTypes: ['gc'] });
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
