import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';
import { connectorFor, type TlsOptions } from './connector.ts';

export type Reach =
  | {
      readonly kind: 'reached';
      readonly address: string;
      readonly tookMs: number;
      /** null for http. */
      readonly certificate: Certificate | null;
    }
  | { readonly kind: 'failed'; readonly code: string; readonly reason: string };

interface Certificate {
  readonly names: string;
  readonly validUntil: Date;
  readonly protocol: string;
}

/** Name, connection, and for https the verified certificate, all as for a request; but none is sent: it could run something. */
export function reach(origin: string, timeoutMs: number, tls: TlsOptions = {}): Promise<Reach> {
  const url = new URL(origin);
  const { protocol, port } = url;
  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  const startMs = performance.now();
  return new Promise((resolve) => {
    connectorFor(
      url,
      timeoutMs,
      tls,
    )({ hostname, host: url.host, protocol, port }, (error, socket) => {
      if (error !== null) return resolve(failureOf(error));
      resolve({
        kind: 'reached',
        address: socket.remoteAddress ?? hostname,
        tookMs: performance.now() - startMs,
        certificate: certificateOf(socket),
      });
      socket.destroy();
    });
  });
}

function failureOf(error: Error): Reach {
  const { code = '', message, errors } = error as Error & { code?: string; errors?: Error[] };
  // Of a name with several addresses Node only says that none would do.
  return { kind: 'failed', code, reason: message || errors?.[0]?.message || code };
}

function certificateOf(socket: Socket): Certificate | null {
  if (!(socket instanceof TLSSocket)) return null;
  const { subjectaltname = '', valid_to } = socket.getPeerCertificate();
  const names = subjectaltname.replaceAll(/(DNS|IP Address):/g, '');
  return { names, validUntil: new Date(valid_to), protocol: socket.getProtocol() ?? 'TLS' };
}
