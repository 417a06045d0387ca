import type { IncomingMessage } from 'node:http';
import { Pieces } from './pieces.ts';

export type BodyResult =
  | { readonly kind: 'body'; readonly body: Buffer }
  | { readonly kind: 'too_large' }
  /** No room in memory. */
  | { readonly kind: 'overloaded' }
  | { readonly kind: 'incomplete' };

/** Milliseconds from the head to the body's last byte. Only guarded requests have this limit: others are streamed. */
const bodyTimeoutMs = 60_000;

/** A fault of the connection that comes later is seen elsewhere. */
const ignore = (): void => {};

/** The whole body or nothing: a reservation is only made once every byte is there. */
export function readBody(
  req: IncomingMessage,
  limitBytes: number,
  memory: { tryHold(bytes: number): boolean },
): Promise<BodyResult> {
  if (Number(req.headers['content-length'] ?? 0) > limitBytes) return Promise.resolve({ kind: 'too_large' });
  // Also without a byte to come: its answer will need room.
  if (!memory.tryHold(0)) return Promise.resolve({ kind: 'overloaded' });
  return new Promise((resolve) => {
    const pieces = new Pieces();
    // Nothing of this may outlive the body: a listener that stayed would keep it in memory as long as the request.
    const finish = (result: BodyResult) => {
      clearTimeout(timer);
      req.off('data', onData).off('end', onEnd).off('close', onCut).off('error', onCut);
      req.on('error', ignore);
      pieces.clear();
      resolve(result);
    };
    const stop = (kind: 'too_large' | 'overloaded') => {
      req.pause();
      finish({ kind });
    };
    const onData = (chunk: Buffer) => {
      if (pieces.bytes + chunk.length > limitBytes) stop('too_large');
      else if (memory.tryHold(chunk.length)) pieces.add(chunk);
      else stop('overloaded');
    };
    const onEnd = () => finish({ kind: 'body', body: pieces.whole() });
    const onCut = () => finish({ kind: 'incomplete' });
    const timer = setTimeout(onCut, bodyTimeoutMs);
    req.on('data', onData).once('end', onEnd).once('close', onCut).once('error', onCut);
  });
}
