import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, rmSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join, relative } from 'node:path';
import { OncegateError } from '../../errors.ts';
import { notOurs } from './embedded-home.ts';

const PREFIX = 'owner-';
/** sockaddr_un holds 103 bytes on macOS, 107 on Linux. */
const MAX_SOCKET_PATH_BYTES = 103;

interface Claim {
  readonly release: () => void;
}

/**
 * Makes this process the only owner of `dir`. Every process first shows its own claim, a listening socket of a name
 * of its own, and then looks for others: of two that start together at least one sees the other, and never both own.
 * The kernel ends a claim with its process, however that died, and answers for processes of other containers too.
 */
export async function claim(dir: string): Promise<Claim> {
  const name = `${PREFIX}${process.pid}-${randomBytes(4).toString('hex')}`;
  const server = createServer((socket) => socket.destroy()).unref();
  try {
    // Writable by all, so that another user gets an answer rather than EACCES.
    server.listen({ path: socketPath(dir, name), writableAll: true });
    await once(server, 'listening');
    for (const other of readdirSync(dir)) {
      if (!other.startsWith(PREFIX) || other === name) continue;
      if (await isHeld(socketPath(dir, other))) throw inUse(dir, other);
      rmSync(join(dir, other), { force: true });
    }
  } catch (error) {
    server.close();
    throw error instanceof OncegateError ? error : notOurs(dir, error);
  }
  return { release: () => void server.close() };
}

function isHeld(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => resolve(true));
    // Only these two say that nobody is there; anything else could be an owner that we are not allowed to see.
    socket.once('error', ({ code }: NodeJS.ErrnoException) => {
      resolve(code !== 'ECONNREFUSED' && code !== 'ENOENT');
    });
    socket.once('close', () => socket.destroy());
  });
}

function inUse(dir: string, owner: string): OncegateError {
  const pid = owner.slice(PREFIX.length).split('-')[0];
  return new OncegateError(
    'embedded_failed',
    `${dir} is in use by process ${pid}: stop that oncegate first, or choose another directory with --data-dir or store.dataDir`,
  );
}

function socketPath(dir: string, name: string): string {
  const absolute = join(dir, name);
  const fromHere = relative(process.cwd(), absolute);
  const path = fromHere.length < absolute.length ? fromHere : absolute;
  if (Buffer.byteLength(path) <= MAX_SOCKET_PATH_BYTES) return path;
  throw new OncegateError('embedded_failed', `the path ${dir} is too long: choose a shorter store.dataDir`);
}
