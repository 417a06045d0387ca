const lookMs = 25;

/** Looks until there is something to see. The limit ends a test that would hang; it says nothing about speed. */
export async function until<T>(
  what: string,
  look: () => T | Promise<T>,
  withinMs = 20_000,
): Promise<Exclude<T, false | null | undefined>> {
  const untilMs = performance.now() + withinMs;
  for (;;) {
    const seen = await look();
    if (seen !== false && seen !== null && seen !== undefined)
      return seen as Exclude<T, false | null | undefined>;
    if (performance.now() > untilMs) throw new Error(`not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, lookMs));
  }
}
