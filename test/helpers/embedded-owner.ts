/** A process that owns an embedded server: says so on stdout, lives until its stdin ends, then stops the server. */
import { once } from 'node:events';
import { asError } from '../../src/errors.ts';
import { startEmbedded } from '../../src/store/postgres/embedded.ts';

try {
  const server = await startEmbedded({ dataDir: process.argv[2] ?? '', log: () => {} });
  process.stdout.write(`${JSON.stringify({ pid: server.pid, url: server.url })}\n`);
  process.stdin.resume();
  await once(process.stdin, 'end');
  await server.stop();
} catch (error) {
  process.stdout.write(`${JSON.stringify({ error: asError(error).message })}\n`);
}
