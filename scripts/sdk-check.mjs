/**
 * Real SDKs against a real `oncegate serve`, in both dialects: each of our problems is an error that shows our words, and whatever comes,
 * their own retries too, no guarded operation runs twice. Their packages are pinned in test/sdk and kept in the cache; those of a
 * registry out of reach are left out, with a word.
 *   npm run check:sdk
 */
import { prepare } from './sdk-bench.mjs';
import { guardedCases } from './sdk-cases.mjs';
import { npmClients, pythonClients } from './sdk-clients.mjs';
import { passedCases } from './sdk-passed.mjs';
import { problemCodes } from './sdk-problem.mjs';
import { answersUnsaved } from './sdk-unsaved.mjs';
import { check, main, step } from './steps.mjs';

/**
 * `showsBody`: plain HTTP clients, which show it beside words of their own. `obeys`: does not retry where we say that it should not.
 * `can`: what not all can; Stripe's make a key where none is.
 */
const sdks = [
  { name: 'stripe', can: [], obeys: true },
  { name: 'openai', can: ['noKey', 'streams'], obeys: true },
  { name: 'aws-sdk', can: ['noKey'] },
  { name: 'axios + axios-retry', can: ['noKey', 'streams', 'proxies', 'methods'], showsBody: true },
  { name: 'got', can: ['noKey', 'streams', 'methods'], showsBody: true },
  { name: 'stripe (Python)', can: [], obeys: true },
  { name: 'requests', can: ['noKey', 'streams', 'proxies', 'methods'], showsBody: true },
];
const cases = [...guardedCases, ...passedCases];
const last = 'answer_unsaved';

await main('sdk', async () => {
  const teardown = [];
  const t = { teardown: (work) => teardown.push(work) };
  try {
    const names = [last, ...guardedCases.map(({ name }) => name)];
    for (const code of problemCodes) check(names.includes(code), `${code}: no case tries it`);
    const open = { ...(await npmClients()), ...(await pythonClients()) };
    const driven = sdks
      .filter(({ name }) => open[name] !== undefined)
      .map((sdk) => ({ sdk, client: open[sdk.name](t) }));
    const tables = [];
    for (const dialect of ['ietf', 'stripe']) {
      const bench = await step(`Sidecars, dialect ${dialect}`, () => prepare(t, dialect));
      const rows = await step(`${driven.length} SDKs, dialect ${dialect}`, () => rowsOf(bench, driven));
      tables.push({ dialect, rows });
    }
    for (const table of tables) show(table, driven);
    const all = tables.flatMap(({ rows }) => rows.flatMap(({ faults }) => faults));
    const tried = all.filter((fault) => fault !== undefined);
    const failed = tried.filter((fault) => fault !== null).length;
    // The last line, after all is cleared away.
    process.once('exit', () => process.stdout.write(`${tried.length - failed} passed, ${failed} failed\n`));
    check(failed === 0, 'see the tables');
  } finally {
    for (const work of teardown.reverse()) await work();
  }
});

/** A row for each case, with what went wrong for each SDK: null where nothing did, undefined where it cannot be tried. */
async function rowsOf(bench, driven) {
  const unsaved = answersUnsaved(bench, driven).catch(({ message }) => driven.map(() => message));
  const columns = driven.map((one) => columnOf(bench, one));
  const faults = await Promise.all([...columns, unsaved]);
  const ofLast = { name: last, faults: faults.pop() };
  return [...cases.map(({ name }, i) => ({ name, faults: faults.map((column) => column[i]) })), ofLast];
}

/** One after the other, the slow ones beside them. */
async function columnOf(bench, { sdk, client }) {
  let before = Promise.resolve();
  return Promise.all(
    cases.map(async (one) => {
      if (one.needs !== undefined && !sdk.can.includes(one.needs)) return undefined;
      const run = () => one.run(bench, client, sdk).catch((error) => error.message.split('\n')[0]);
      if (one.isSlow) return run();
      before = before.then(run);
      return before;
    }),
  );
}

function show({ dialect, rows }, driven) {
  const line = (cells) => process.stdout.write(`| ${cells.join(' | ')} |\n`);
  process.stdout.write('\n');
  line([`dialect ${dialect}`, ...driven.map(({ sdk }) => sdk.name)]);
  line(['---', ...driven.map(() => '---')]);
  for (const { name, faults } of rows)
    line([name, ...faults.map((fault) => (fault === undefined ? '-' : fault === null ? 'ok' : 'FAILED'))]);
  for (const { name, faults } of rows)
    faults.forEach((fault, i) => {
      if (typeof fault === 'string') process.stdout.write(`${name}, ${driven[i].sdk.name}: ${fault}\n`);
    });
}
