import { readdirSync } from 'node:fs';

/**
 * One-change breakages of important rules, each with the test that must go red: every file of test/breakages/ lists those of one
 * area. scripts/breakages.mjs applies each to a copy of the sources: `npm run breakages`.
 * `in` names the function, constant, class or `Class.member` in which the change is made, whichever file it stands in; `file` stands for it
 * only where there is no name (an import, a migration). `find` is a text in there, to which white space counts for nothing.
 * `more`: edits without which it would not be what it is called. `alsoBy`: other tests that must go red too, some after more
 * edits still.
 */
const folder = new URL('./breakages/', import.meta.url);
const areas = readdirSync(folder).filter((name) => name.endsWith('.mjs'));

export const breakages = (
  await Promise.all(areas.sort().map((name) => import(new URL(name, folder).href)))
).flatMap((area) => area.breakages);
