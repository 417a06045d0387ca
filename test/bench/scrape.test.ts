import t from 'tap';
import { quantileMs, reapedIn, reserveBuckets } from '../../bench/scrape.ts';

const metrics = (fast: number, slow: number, late: number) => `# TYPE oncegate_reserve_seconds histogram
oncegate_reserve_seconds_bucket{le="0.001"} ${fast}
oncegate_reserve_seconds_bucket{le="0.01"} ${fast + slow}
oncegate_reserve_seconds_bucket{le="+Inf"} ${fast + slow + late}
oncegate_loop_records_total{loop="sweeper",action="reaped"} 3
oncegate_loop_records_total{loop="reaper",action="reaped"} 41`;

t.test('a quantile of what came between two looks', async (t) => {
  const before = reserveBuckets(metrics(1000, 1000, 1000));
  const since = (fast: number, slow: number, late: number) =>
    reserveBuckets(metrics(1000 + fast, 1000 + slow, 1000 + late));
  t.equal(quantileMs(before, since(100, 0, 0), 0.99), 0.99);
  t.equal(quantileMs(before, since(0, 100, 0), 0.5)?.toFixed(3), '5.500');
  t.equal(quantileMs(before, since(10, 10, 80), 0.99), 10, 'no more is known than the last bound');
  t.equal(quantileMs(before, since(0, 0, 0), 0.99), null);
});

t.test('what the reaper took', async (t) => {
  t.equal(reapedIn(metrics(0, 0, 0)), 41);
  t.equal(reapedIn('oncegate_loop_records_total{loop="sweeper",action="swept"} 7'), 0);
});
