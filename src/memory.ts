import { totalmem } from 'node:os';

/** Never more than this, however much there is: a longer queue helps nobody. */
const mostHeldBytes = 256 * 1_048_576;
/** Of what the container may use: bodies, which are outside the heap. A third is left for code, sockets, and young objects. */
const heldPart = 1 / 4;
/** Likewise: connections, and requests without their bodies. These are in the heap, beside 30 MB of the program's own. */
const mostRequestBytes = 256 * 1_048_576;
const requestPart = 1 / 8;
/** The Dockerfile has the same number, for the process that the image starts. */
const heapPercent = 40;
/** MB of each half of the room for new objects; what garbage.ts holds others to. */
const semiSpaceMb = 16;
const bytesPerMb = 1_048_576;

/**
 * Bytes that this process may use, one of `processes` in its container: the limit of its cgroup, v1 or v2. null: none is set,
 * which Linux tells by 0 or by more than the machine has.
 */
export function memoryShare(
  processes: number,
  limitBytes: number | undefined = process.constrainedMemory(),
): number | null {
  const isLimited = limitBytes !== undefined && limitBytes > 0 && limitBytes < totalmem();
  return isLimited ? Math.floor(limitBytes / processes) : null;
}

/** Bytes of bodies that may be held at once (proxy/budget.ts). */
export function heldLimitOf(shareBytes: number | null): number {
  return shareBytes === null ? mostHeldBytes : Math.min(mostHeldBytes, Math.floor(shareBytes * heldPart));
}

/** Bytes of connections, and of requests without their bodies, that may be held at once (proxy/request-memory.ts). */
export function requestLimitOf(shareBytes: number | null): number {
  return shareBytes === null
    ? mostRequestBytes
    : Math.min(mostRequestBytes, Math.floor(shareBytes * requestPart));
}

/**
 * Flags for a worker, since V8 takes them at the start alone and else gives each of them the part of the container that is meant
 * for one process. What whoever starts us has set themselves stays.
 */
export function workerFlags(
  processes: number,
  shareBytes: number | null,
  given: string = `${process.execArgv.join(' ')} ${process.env['NODE_OPTIONS'] ?? ''}`,
): string[] {
  if (shareBytes === null || /--max[-_]old[-_]space[-_]size(?![-_]percentage)/.test(given)) return [];
  const semiSpace = /--max[-_]semi[-_]space[-_]size/.test(given)
    ? []
    : [`--max-semi-space-size=${semiSpaceMb}`];
  // Where the environment has the percentage, as in the image, it would beat the other flag.
  const heap = given.includes('--max-old-space-size-percentage')
    ? `--max-old-space-size-percentage=${Math.max(1, Math.floor(heapPercent / processes))}`
    : `--max-old-space-size=${Math.floor((shareBytes * heapPercent) / 100 / bytesPerMb)}`;
  return [heap, ...semiSpace];
}
