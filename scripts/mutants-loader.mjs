/**
 * For scripts/mutants-runner.mjs: every run gets modules of its own, so that a mutant in what a module does when it loads
 * is seen, and nothing that one mutant left in a module's memory is there for the next.
 */
const tap = new URL('./mutants-tap.mjs', import.meta.url).href;

export async function resolve(specifier, context, next) {
  if (specifier === 'tap') return { url: tap, shortCircuit: true };
  const resolved = await next(specifier, context);
  const run = /\?run=\d+$/.exec(context.parentURL ?? '');
  return run !== null && specifier.startsWith('.') ? { ...resolved, url: resolved.url + run[0] } : resolved;
}
