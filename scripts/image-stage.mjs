import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createSocketServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startContainer } from './image-container.mjs';

/** What containers need around them: an upstream, a PostgreSQL, a directory for files. `close` also removes containers. */
export async function openStage() {
  const { tsImport } = await import('tsx/esm/api');
  const { startTestServer } = await tsImport('../test/helpers/postgres.ts', import.meta.url);
  const { until } = await tsImport('../test/helpers/until.ts', import.meta.url);
  const dir = mkdtempSync(join(tmpdir(), 'oncegate-stage-'));
  const postgres = await startTestServer();
  const upstream = await startUpstream();
  const containers = [];
  const close = async () => {
    for (const container of containers.splice(0)) await container.remove();
    upstream.close();
    await postgres.stop();
    rmSync(dir, { recursive: true, force: true });
  };
  return {
    dir,
    until,
    databaseUrl: postgres.url,
    upstream,
    close,
    start(image, options) {
      const container = startContainer(image, options);
      containers.push(container);
      return container;
    },
    writeFile(name, text) {
      const file = join(dir, name);
      writeFileSync(file, text);
      // The container's user is not ours.
      chmodSync(file, 0o644);
      return file;
    },
  };
}

/** Counts what it was asked to do. /held is answered only after `release`. */
async function startUpstream() {
  let runs = 0;
  let release;
  const released = new Promise((resolve) => (release = resolve));
  let reached;
  const held = new Promise((resolve) => (reached = resolve));
  const server = createServer(async (req, res) => {
    req.resume();
    await once(req, 'end');
    runs += 1;
    const mine = runs;
    if (req.url === '/held') {
      reached();
      await released;
    }
    res.writeHead(201, { 'Content-Type': 'application/json' }).end(JSON.stringify({ run: mine }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  const url = `http://127.0.0.1:${server.address().port}`;
  return { url, runs: () => runs, held, release, close };
}

/** Containers share this machine's network, where the usual ports may be taken. */
export async function freePort() {
  const server = createSocketServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
