/** What Oncegate says of itself on its ops port, in Prometheus' text. */
export async function scrape(opsPort: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${opsPort}/metrics`);
  if (!response.ok) throw new Error(`/metrics answers ${response.status}`);
  return await response.text();
}

/** 0: it has not happened yet. */
export function reapedIn(text: string): number {
  const line = text
    .split('\n')
    .find(
      (each) =>
        each.startsWith('oncegate_loop_records_total{') &&
        each.includes('loop="reaper"') &&
        each.includes('action="reaped"'),
    );
  return line === undefined ? 0 : Number(line.slice(line.lastIndexOf(' ') + 1));
}

/** How many were at most so long, by the upper bound of each bucket in seconds; they include each other. */
type Buckets = ReadonlyMap<number, number>;

export function reserveBuckets(text: string): Buckets {
  const lines = text.matchAll(/^oncegate_reserve_seconds_bucket\{le="([^"]+)"\} (\d+)$/gm);
  return new Map([...lines].map(([, le, count]) => [le === '+Inf' ? Infinity : Number(le), Number(count)]));
}

/**
 * Of what came between two looks, ms. Within a bucket it is taken as spread evenly, as Prometheus does; the figure is no
 * finer than the buckets are. null: nothing came.
 */
export function quantileMs(before: Buckets, after: Buckets, share: number): number | null {
  const bounds = [...after.keys()].sort((a, b) => a - b);
  const since = (bound: number): number => (after.get(bound) ?? 0) - (before.get(bound) ?? 0);
  const total = since(Infinity);
  if (total === 0) return null;
  const wanted = share * total;
  const index = bounds.findIndex((bound) => since(bound) >= wanted);
  const [lower, upper] = [bounds[index - 1] ?? 0, bounds[index] ?? Infinity];
  // Longer than the last bound: that is all that is known.
  if (upper === Infinity) return lower * 1000;
  const below = index === 0 ? 0 : since(lower);
  return 1000 * (lower + ((upper - lower) * (wanted - below)) / (since(upper) - below));
}
