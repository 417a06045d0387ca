/** How much more CPU a piece of work costs on four times the input. Linear: about 4. Quadratic: about 16. */
export interface Growth {
  readonly name: string;
  /** Bytes of the smallest of the three inputs. */
  readonly size: number;
  /** Makes the input of so many bytes, and gives the work on it. */
  readonly on: (size: number) => () => unknown;
}

/** Between 4 and 16, nearer to linear: sorting and larger caches cost a little more than four times as much. */
export const linearLimit = 10;

/** CPU microseconds below which the measure would be that of the clock. */
const minMeasuredUs = 2_000;
const maxRounds = 9;

export interface Ratio {
  /** Of twice and of four times the input. */
  readonly twice: number;
  readonly fourfold: number;
}

/**
 * The least of several rounds counts, in CPU time of this process, so that neither neighbours on the machine nor a collection of
 * garbage decide. More rounds are run only while the result would be over the limit.
 */
export function growthOf({ size, on }: Growth): Ratio {
  const works = [on(size), on(2 * size), on(4 * size)];
  const [first] = works as [() => unknown];
  const times = timesFor(first);
  const least = works.map(() => Number.POSITIVE_INFINITY);
  let ratio: Ratio = { twice: Number.POSITIVE_INFINITY, fourfold: Number.POSITIVE_INFINITY };
  for (let round = 0; round < maxRounds; round += 1) {
    works.forEach((work, i) => {
      least[i] = Math.min(least[i] as number, cpuUsOf(work, times));
    });
    const [one, two, four] = least as [number, number, number];
    ratio = { twice: two / one, fourfold: four / one };
    if (round >= 1 && ratio.fourfold < linearLimit) break;
  }
  return ratio;
}

/** How often the smallest must run to be measured; it is warm afterwards. */
function timesFor(work: () => unknown): number {
  for (let times = 1; ; times *= 2) if (cpuUsOf(work, times) >= minMeasuredUs) return times;
}

function cpuUsOf(work: () => unknown, times: number): number {
  const before = process.cpuUsage();
  for (let i = 0; i < times; i += 1) work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
