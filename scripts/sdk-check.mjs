/**
 * Real SDKs against a real `oncegate serve`: a success and its retry run once, and each of our problems is an error that shows our
 * words. Their packages are pinned in test/sdk and kept in the cache; those of a registry out of reach are left out, with a word.
 *   npm run check:sdk
 */
import { prepare, problems } from './sdk-cases.mjs';
import { npmClients, pythonClients } from './sdk-clients.mjs';
import { check, main, step } from './steps.mjs';

/** `showsBody`: plain HTTP clients, which show it beside words of their own. `makesKeys`: never without a key. */
const sdks = [
  { name: 'stripe', dialects: ['ietf', 'stripe'], makesKeys: true },
  { name: 'openai' },
  { name: 'aws-sdk' },
  { name: 'axios + axios-retry', showsBody: true },
  { name: 'got', showsBody: true },
  { name: 'stripe (Python)', dialects: ['ietf', 'stripe'], makesKeys: true },
  { name: 'requests', showsBody: true },
];

await main('sdk', async () => {
  const teardown = [];
  const t = { teardown: (work) => teardown.push(work) };
  try {
    const open = { ...(await npmClients()), ...(await pythonClients()) };
    const rows = [];
    for (const dialect of ['ietf', 'stripe']) {
      const bench = await step(`Sidecars, dialect ${dialect}`, () => prepare(t, dialect));
      for (const sdk of sdks) {
        if (!(sdk.dialects ?? ['ietf']).includes(dialect) || open[sdk.name] === undefined) continue;
        await step(`${sdk.name}, dialect ${dialect}`, async () => {
          const client = open[sdk.name](t);
          for (const problem of problems)
            if (problem.name !== 'key_missing' || !sdk.makesKeys)
              rows.push(await tried({ bench, sdk, client, dialect, problem }));
        });
      }
    }
    process.stdout.write(`\n| SDK | dialect | case | result |\n|---|---|---|---|\n`);
    for (const { sdk, dialect, problem, fault } of rows)
      process.stdout.write(`| ${sdk.name} | ${dialect} | ${problem.name} | ${fault ?? 'ok'} |\n`);
    const failed = rows.filter(({ fault }) => fault !== null).length;
    // The last line, after all is cleared away.
    process.once('exit', () => process.stdout.write(`${rows.length - failed} passed, ${failed} failed\n`));
    check(failed === 0, 'see the table');
  } finally {
    for (const work of teardown.reverse()) await work();
  }
});

async function tried(all) {
  const { bench, sdk, client, problem } = all;
  try {
    return { ...all, fault: await problem.run(bench, client, sdk) };
  } catch (error) {
    return { ...all, fault: error.message.split('\n')[0] };
  }
}
