import t from 'tap';
import { Clients } from '../../src/upstream/clients.ts';
import { RawUpstream } from '../helpers/raw-upstream.ts';
import { send, target } from './send.ts';

t.test('routes to one origin share its client; another origin has its own', async (t) => {
  const clients = new Clients();
  t.teardown(() => clients.destroy());
  const one = target('http://127.0.0.1:9', 1);
  t.equal(clients.for(one), clients.for({ ...one, timeoutMs: one.timeoutMs + 1 }));
  t.equal(clients.for(one), clients.for(one));
  t.not(clients.for(one), clients.for(target('http://127.0.0.1:10', 1)));
});

t.test('destroy ends the calls of every origin', async (t) => {
  const clients = new Clients();
  const calls = [];
  for (let left = 2; left > 0; left -= 1) {
    const upstream = await RawUpstream.listen({});
    t.teardown(() => upstream.close());
    calls.push(send(clients.for(target(upstream.origin, 1))));
  }
  await clients.destroy();
  for (const { ended } of calls) t.not((await ended).kind, 'answered');
});
