import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import pg from 'pg';
import t from 'tap';
import { ownServer, query, type Teardown, testDatabase } from './postgres.ts';
import { ServerMessages } from './server-messages.ts';
import { serverMessage, type TcpProxy, tcpProxy } from './tcp-proxy.ts';

/** Both ends of the proxy, each with what it has received and how it ended. */
class End {
  readonly socket: Socket;
  received = '';
  ended: string | undefined;
  #changed = () => {};

  constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk) => this.#note(() => (this.received += chunk)));
    socket.on('end', () => this.#note(() => (this.ended ??= 'FIN')));
    socket.on('error', (error: NodeJS.ErrnoException) => this.#note(() => (this.ended = error.code)));
  }

  async until(condition: (end: End) => boolean): Promise<void> {
    while (!condition(this)) await new Promise<void>((resolve) => (this.#changed = resolve));
  }

  #note(change: () => void): void {
    change();
    this.#changed();
  }
}

interface Rig {
  readonly proxy: TcpProxy;
  open(): Promise<{ client: End; server: End }>;
}

async function rig(t: Teardown): Promise<Rig> {
  const sockets: Socket[] = [];
  const listener = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const target = { host: '127.0.0.1', port: (listener.address() as AddressInfo).port };
  const proxy = await tcpProxy(t, target);
  t.teardown(() => {
    listener.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    proxy,
    async open() {
      const accepted = once(listener, 'connection') as Promise<[Socket]>;
      const client = connect({ port: proxy.port, host: '127.0.0.1', allowHalfOpen: true });
      const [server] = await accepted;
      sockets.push(client, server);
      return { client: new End(client), server: new End(server) };
    },
  };
}

t.test('passes bytes and closes both ways, and counts them', async (t) => {
  const { proxy, open } = await rig(t);
  const { client, server } = await open();
  client.socket.write('hello');
  await server.until(({ received }) => received === 'hello');
  server.socket.end('welcome');
  await client.until(({ ended }) => ended === 'FIN');
  t.equal(client.received, 'welcome');
  t.same(proxy.counts(), { connections: 1, open: 1, toServer: 5, toClient: 7 });
  client.socket.end('bye');
  await server.until(({ ended }) => ended === 'FIN');
  t.equal(server.received, 'hellobye');
});

t.test('passes more than the buffers hold', async (t) => {
  const { open } = await rig(t);
  const { client, server } = await open();
  const bytes = 8_000_000;
  client.socket.write(Buffer.alloc(bytes, 'x'));
  await server.until(({ received }) => received.length === bytes);
  t.pass('all of it');
});

t.test('cutAll resets both sides', async (t) => {
  const { proxy, open } = await rig(t);
  const { client, server } = await open();
  client.socket.write('x');
  await server.until(({ received }) => received === 'x');
  proxy.cutAll();
  await client.until(({ ended }) => ended === 'ECONNRESET');
  await server.until(({ ended }) => ended === 'ECONNRESET');
  t.pass('both');
});

t.test('refuse resets new connections, and only while it is on', async (t) => {
  const { proxy, open } = await rig(t);
  proxy.refuse(true);
  const refused = new End(connect(proxy.port, '127.0.0.1'));
  await refused.until(({ ended }) => ended === 'ECONNRESET');
  proxy.refuse(false);
  const { client, server } = await open();
  client.socket.write('x');
  await server.until(({ received }) => received === 'x');
  t.equal(proxy.counts().connections, 2);
});

t.test('a reset and a refused target are passed on as resets', async (t) => {
  const { open } = await rig(t);
  const { client, server } = await open();
  client.socket.write('x');
  await server.until(({ received }) => received === 'x');
  client.socket.resetAndDestroy();
  await server.until(({ ended }) => ended === 'ECONNRESET');

  const nowhere = createServer().listen(0, '127.0.0.1');
  await once(nowhere, 'listening');
  const { port } = nowhere.address() as AddressInfo;
  nowhere.close();
  await once(nowhere, 'close');
  const proxy = await tcpProxy(t, { host: '127.0.0.1', port });
  const lost = new End(connect(proxy.port, '127.0.0.1'));
  await lost.until(({ ended }) => ended === 'ECONNRESET');
  t.pass('both');
});

t.test('pause is a black hole in one direction or in both', async (t) => {
  const { proxy, open } = await rig(t);
  const { client, server } = await open();
  proxy.pause('toServer');
  client.socket.write('lost for now');
  server.socket.write('still seen');
  await client.until(({ received }) => received === 'still seen');
  t.equal(proxy.counts().toServer, 0);
  proxy.pause();
  server.socket.end(' later');
  const other = await open();
  other.client.socket.write('new');
  other.client.socket.end();
  t.equal(server.received, '');
  proxy.resume();
  await server.until(({ received }) => received === 'lost for now');
  await client.until(({ ended }) => ended === 'FIN');
  t.equal(client.received, 'still seen later');
  await other.server.until(({ ended }) => ended === 'FIN');
  t.equal(other.server.received, 'new');
});

t.test('a match may span chunks', async (t) => {
  const { proxy, open } = await rig(t);
  const { client, server } = await open();
  const trap = proxy.onceClientSends('needle', 'cut-before');
  client.socket.write('hay nee');
  await server.until(({ received }) => received === 'hay nee');
  client.socket.write('dle hay');
  await trap.fired;
  await server.until(({ ended }) => ended === 'ECONNRESET');
  await client.until(({ ended }) => ended === 'ECONNRESET');
  t.equal(server.received, 'hay nee');
});

t.test('cut-before: the other side never gets it', async (t) => {
  const { proxy, open } = await rig(t);
  const { client, server } = await open();
  const trap = proxy.onceServerSends((chunk) => chunk.includes('committed'), 'cut-before');
  server.socket.write('committed');
  await trap.fired;
  await client.until(({ ended }) => ended === 'ECONNRESET');
  t.equal(client.received, '');
  t.equal(proxy.counts().toClient, 0);
});

t.test('cut-after: the receiver surely has it, the sender hears nothing', async (t) => {
  const { proxy, open } = await rig(t);
  const first = await open();
  const toServer = proxy.onceClientSends('insert', 'cut-after');
  first.client.socket.write('insert');
  await toServer.fired;
  await first.server.until(({ ended }) => ended === 'FIN');
  t.equal(first.server.received, 'insert');
  await first.client.until(({ ended }) => ended === 'ECONNRESET');

  const second = await open();
  const toClient = proxy.onceServerSends('answer', 'cut-after');
  second.server.socket.write('answer');
  await toClient.fired;
  await second.client.until(({ ended }) => ended === 'FIN');
  t.equal(second.client.received, 'answer');
  await second.server.until(({ ended }) => ended === 'ECONNRESET');
});

t.test('hold keeps the bytes until they are released or cut', async (t) => {
  const { proxy, open } = await rig(t);
  const first = await open();
  const trap = proxy.onceClientSends('b', 'hold');
  first.client.socket.write('a');
  await first.server.until(({ received }) => received === 'a');
  first.client.socket.write('b');
  await trap.fired;
  first.client.socket.write('c');
  first.server.socket.write('the other way is open');
  await first.client.until(({ received }) => received !== '');
  t.equal(first.server.received, 'a');
  trap.release();
  await first.server.until(({ received }) => received === 'abc');

  const second = await open();
  const again = proxy.onceClientSends('b', 'hold');
  second.client.socket.write('b');
  await again.fired;
  again.cut();
  await second.server.until(({ ended }) => ended === 'ECONNRESET');
  t.equal(second.server.received, '');
});

t.test('messages of PostgreSQL are found however they are cut', async (t) => {
  const message = (type: string, body: string | Buffer) => {
    const head = Buffer.alloc(5, type);
    head.writeInt32BE(4 + body.length, 1);
    return Buffer.concat([head, Buffer.from(body)]);
  };
  const stream = Buffer.concat([
    message('1', ''),
    message('D', Buffer.alloc(5000, 'C')),
    message('C', 'INSERT 0 1\0'),
    message('Z', 'I'),
  ]);
  for (const size of [1, 2, 7, 64, 4096, stream.length]) {
    const reader = new ServerMessages();
    const found: string[] = [];
    for (let at = 0; at < stream.length; at += size) {
      for (const { type, start } of reader.feed(stream.subarray(at, at + size))) {
        found.push(`${type} ${start.toString('latin1', 0, 6)}`);
      }
    }
    t.same(found, ['1 ', 'D CCCCCC', 'C INSERT', 'Z I'], `in chunks of ${size}`);
  }
  t.same(new ServerMessages().feed(Buffer.from('HTTP\xff\xff\xff\xff not PostgreSQL', 'latin1')), []);
});

t.test('with PostgreSQL', async (t) => {
  const { url } = await testDatabase(t);
  const { hostname: host, port } = new URL(url);
  const proxy = await tcpProxy(t, { host, port: Number(port) });
  await query(url, 'CREATE TABLE item (n int)');
  const open = async () => {
    const client = new pg.Client({ connectionString: proxy.through(url) });
    client.on('error', () => {});
    await client.connect();
    return client;
  };
  const insert = (n: number) => ({ name: 'insert', text: 'INSERT INTO item VALUES ($1)', values: [n] });
  const has = async (n: number) => (await query(url, `SELECT FROM item WHERE n = ${n}`)).length === 1;

  t.test('the answer to a commit is lost, by prepared name too', async (t) => {
    const client = await open();
    await client.query(insert(1));
    const trap = proxy.onceServerSends(serverMessage('C', 'INSERT'), 'cut-before');
    await t.rejects(client.query(insert(2)), { code: 'ECONNRESET' });
    await trap.fired;
    t.ok(await has(2), 'and yet it is there');
  });

  t.test('the statement never arrives', async (t) => {
    const client = await open();
    const trap = proxy.onceClientSends('INSERT INTO item', 'cut-before');
    await t.rejects(client.query(insert(3)), { code: 'ECONNRESET' });
    await trap.fired;
    t.notOk(await has(3));
  });

  t.test('the statement arrives, is held, and runs when let go', async (t) => {
    const client = await open();
    const trap = proxy.onceClientSends('INSERT INTO item', 'hold');
    const done = client.query(insert(4));
    await trap.fired;
    t.notOk(await has(4));
    trap.release();
    await done;
    t.ok(await has(4));
    await client.end();
  });
});

t.test('a server of its own can be stopped, crashed, and started in the same place', async (t) => {
  const server = await ownServer(t);
  await query(server.url, 'CREATE TABLE kept (n int)');
  for (const mode of ['fast', 'immediate'] as const) {
    await server.stop(mode);
    await t.rejects(query(server.url, 'SELECT 1'), { code: 'ECONNREFUSED' });
    await server.start();
    await query(server.url, 'SELECT n FROM kept');
  }
});

t.test('so many bytes and no more, until the limit is lifted', async (t) => {
  const { proxy, open } = await rig(t);
  const { client, server } = await open();
  const spent = proxy.limit('toServer', 5);
  client.socket.write('hello world');
  await spent;
  await server.until(({ received }) => received === 'hello');
  proxy.lift();
  await server.until(({ received }) => received === 'hello world');
});

t.test('bytes in slices, and late, are the same bytes in the same order', async (t) => {
  const { proxy, open } = await rig(t);
  const { client, server } = await open();
  proxy.shape({ sliceBytes: 1, delayMs: 5 });
  client.socket.write('one ');
  client.socket.end('two');
  await server.until(({ received, ended }) => received === 'one two' && ended === 'FIN');
  t.equal(proxy.counts().toServer, 7);
});
