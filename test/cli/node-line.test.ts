import t from 'tap';
import { nodeWarning } from '../../src/cli/node-line.ts';

t.test('a Node.js line past its end of life is warned of, from that day on', async (t) => {
  const eve = new Date('2026-04-29T23:59:59Z');
  const day = new Date('2026-04-30T00:00:00Z');
  t.equal(nodeWarning('v20.20.2', eve), null);
  t.match(nodeWarning('v20.20.2', day), /v20\.20\.2 gets no security fixes since 2026-04-30.*Node\.js 24/);
  t.match(nodeWarning('v25.1.0', new Date('2026-06-01')), /since 2026-06-01/);
  t.equal(nodeWarning('v24.1.0', new Date('2028-04-29')), null);
  t.equal(nodeWarning('v26.0.0', new Date('2040-01-01')), null, 'what is not known is not claimed');
});
