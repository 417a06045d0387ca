import type { Socket } from 'node:net';

/**
 * Whether the upstream ended the connection in order (FIN). It is the only end of a body without length: a reset means that the
 * upstream, or something between, broke off. undici calls both the end of the answer.
 */
const inOrder = Symbol('ended in order');

type Watched = Socket & { [inOrder]?: boolean };

/** Before anything else listens: on 'end' Node closes our side too, and then the connection is no longer what the upstream left. */
export function watchEnd(socket: Watched): void {
  socket.prependListener('end', judgeEnd);
}

export function endedInOrder(socket: Socket | null): boolean {
  return socket !== null && (socket as Watched)[inOrder] === true;
}

/**
 * A reset that arrives together with the last data is reported by libuv as a plain end (POLLHUP after a partial read), without any
 * error. But the system has no peer for such a connection any more, while one that was ended in order still has it. Nobody may ask
 * for the address before: Node would answer from its memory. After an end and a reset in one go it cannot be told which came
 * first: that counts as broken. A close of TLS without close_notify cannot be told from one with it: Node reports both alike.
 */
function judgeEnd(this: Watched): void {
  this[inOrder] = this.errored === null && this.remoteAddress !== undefined;
}
