import { Socket } from 'node:net';

/**
 * Back-pressure that undici never hears of. Its own pause (`controller.pause()`) is not used: in 7.x a FIN or a reset that
 * meets a paused parser on a `Connection: close` answer throws an AssertionError that nobody can catch, and the process
 * ends (nodejs/undici#5360, fixed in 8 only). Instead a held socket says that it has nothing to read: Node's own buffer
 * fills up to its high-water mark, and then the kernel's.
 */
const held = Symbol('held');

export type HoldableSocket = Socket & { [held]?: boolean };

/** undici reads a chunk and parses it in one go, so during its callbacks this is the socket that the call runs on. */
let lastRead: HoldableSocket | null = null;

export function socketBeingRead(): HoldableSocket | null {
  return lastRead;
}

export function makeHoldable(socket: HoldableSocket): void {
  socket[held] = false;
  socket.read = readUnlessHeld;
}

function readUnlessHeld(this: HoldableSocket, size?: number): unknown {
  // read(0) takes no data: Node itself uses it to notice the end of an empty stream.
  if (this[held] === true && size !== 0) return null;
  lastRead = this;
  return Socket.prototype.read.call(this, size);
}

/**
 * The rest of the chunk in hand is still delivered: at most 128 kB, for Node reads 64 kB at a time while less than its high-water mark,
 * 16 kB or (from Node.js 22 on) 64 kB, stands in its buffer.
 */
export function hold(socket: HoldableSocket): void {
  socket[held] = true;
}

export function letGo(socket: HoldableSocket): void {
  if (socket[held] !== true) return;
  socket[held] = false;
  // Later, and not inside whatever callback this is: undici's parser must not be entered twice.
  process.nextTick(wake, socket);
}

/** Tells undici to read again; the events that came meanwhile found nothing. */
function wake(socket: HoldableSocket): void {
  if (!socket.destroyed) socket.emit('readable');
}
