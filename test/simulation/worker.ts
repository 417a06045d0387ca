/** Plays seeds `from` to `from + count - 1` and prints a tally, as one line of JSON, after every so many. */
import { playSchedule } from './schedule.ts';
import { count, emptyTally } from './tally.ts';

const perLine = 200;
const [from, many] = process.argv.slice(2).map(Number) as [number, number];

let tally = emptyTally();
for (let seed = from; seed < from + many; seed += 1) {
  count(tally, seed, await playSchedule({ seed }));
  if (tally.played < perLine && seed < from + many - 1) continue;
  process.stdout.write(`${JSON.stringify(tally)}\n`);
  tally = emptyTally();
}
