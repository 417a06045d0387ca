/** The service behind the sidecars of `hammer`, in a process of its own: says where it is, and when asked, what ran. */
import { answer, loggedUpstream } from './logged-upstream.ts';
import { Random } from './random.ts';
import { Stage } from './stage.ts';

export interface Ran {
  readonly starts: number;
  readonly keys: number;
  /** Keys that ran more than once, and how often. */
  readonly twice: readonly string[];
}

/** Milliseconds that it takes: long enough for duplicates to find their key in progress. */
const quickestMs = 2;
const slowestMs = 20;

const random = new Random(Number(process.argv[2]));
const upstream = await loggedUpstream(new Stage(), (start, res) => {
  setTimeout(answer, random.between(quickestMs, slowestMs), start, res);
});

function ran(): Ran {
  const keys = new Set(upstream.starts.map(({ key }) => key));
  const twice = [...keys].filter((key) => upstream.startsOf(key).length > 1);
  return {
    starts: upstream.starts.length,
    keys: keys.size,
    twice: twice.map((key) => `${key} ran ${upstream.startsOf(key).length} times`),
  };
}

process.on('message', () => process.send?.(ran()));
process.on('disconnect', () => process.exit());
process.send?.({ url: upstream.url });
