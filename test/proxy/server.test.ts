import { once } from 'node:events';
import { Agent, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { compilePolicies } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load.ts';
import { type RequestDone, requestDone } from '../../src/events.ts';
import { assemble } from '../../src/instance.ts';
import { Budget } from '../../src/proxy/budget.ts';
import { createProxyServer } from '../../src/proxy/server.ts';
import { PostgresStore } from '../../src/store/postgres/postgres.ts';
import { Clients } from '../../src/upstream/clients.ts';
import { ask, problemOf } from '../helpers/client.ts';
import { testUpstream } from '../helpers/upstream.ts';

t.test(
  'a request on a connection that was never announced is refused, and the log has the fault',
  async (t) => {
    const upstream = await testUpstream(t);
    const flags = [{ from: 'test', path: ['upstream', 'url'], value: upstream.url }];
    const config = loadConfig({ text: '', flags, env: {} });
    // It connects when it is first asked: here never.
    const store = new PostgresStore({
      url: 'postgres://127.0.0.1:1/none',
      poolSize: 6,
      durability: 'strict',
    });
    const clients = new Clients();
    const policies = compilePolicies(config);
    const { deps } = assemble({ config, policies, store, clients, heldLimitBytes: 1e9 });
    const { app } = await createProxyServer(deps, new Budget(1e9));
    await app.ready();
    // As Fastify's own second server for `localhost`, and any that speaks TLS: its sockets are none that our server told us of.
    const other = createServer((req, res) => app.routing(req, res)).listen(0, '127.0.0.1');
    await once(other, 'listening');
    const agent = new Agent({ keepAlive: true });
    t.teardown(async () => {
      agent.destroy();
      other.close();
      await app.close();
      await store.close(0);
    });
    const seen: RequestDone[] = [];
    t.teardown(requestDone.subscribe((done) => void seen.push(done)));
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}/a`;
    for (const method of ['POST', 'GET']) {
      const answer = await ask(url, { method, key: 'k', agent });
      t.same([answer.status, problemOf(answer).code], [503, 'overloaded']);
      t.equal(answer.headers.connection, 'close');
    }
    t.equal(upstream.executions.length, 0, 'nothing was forwarded');
    t.same(
      seen.map(({ error }) => error?.message),
      Array(2).fill('fault in oncegate: a request came on a connection that nobody announced'),
    );
  },
);
