import type { ServerResponse } from 'node:http';

/**
 * Ends an answer so that its client sees that it is not whole. An HTTP/1.0 client takes a plain close for the end of a body
 * without length: only a reset shows it the cut. It may lose what was on its way, which the others get.
 */
export function cutAnswer(res: ServerResponse): void {
  const { socket } = res;
  // Of TLS even a plain close shows it: the end of its records is missing.
  if (res.req.httpVersion === '1.0' && socket !== null && !('encrypted' in socket)) socket.resetAndDestroy();
  res.destroy();
}
