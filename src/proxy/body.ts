import type { IncomingMessage } from 'node:http';

export type BodyResult =
  | { readonly kind: 'body'; readonly body: Buffer }
  | { readonly kind: 'too_large' }
  /** No room in memory. */
  | { readonly kind: 'overloaded' }
  | { readonly kind: 'incomplete' };

/** Milliseconds from the head to the body's last byte. Only guarded requests have this limit: others are streamed. */
const bodyTimeoutMs = 60_000;

/** The whole body or nothing: a reservation is only made once every byte is there. */
export function readBody(
  req: IncomingMessage,
  limitBytes: number,
  memory: { tryHold(bytes: number): boolean },
): Promise<BodyResult> {
  if (Number(req.headers['content-length'] ?? 0) > limitBytes) return Promise.resolve({ kind: 'too_large' });
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const finish = (result: BodyResult) => {
      clearTimeout(timer);
      req.off('data', onData);
      resolve(result);
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > limitBytes) {
        req.pause();
        finish({ kind: 'too_large' });
        return;
      }
      if (!memory.tryHold(chunk.length)) {
        req.pause();
        finish({ kind: 'overloaded' });
        return;
      }
      chunks.push(chunk);
    };
    const timer = setTimeout(finish, bodyTimeoutMs, { kind: 'incomplete' });
    req.on('data', onData);
    req.once('end', () =>
      finish({
        kind: 'body',
        body: chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size),
      }),
    );
    // Comes after 'end' too, when it changes nothing any more.
    req.once('close', () => finish({ kind: 'incomplete' }));
    req.once('error', () => finish({ kind: 'incomplete' }));
  });
}
