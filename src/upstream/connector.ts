import { isIP } from 'node:net';
import { buildConnector } from 'undici';
import { makeHoldable } from './hold.ts';
import { watchEnd } from './orderly-end.ts';

export interface TlsOptions {
  /** Certificate authorities instead of the system's, PEM. */
  readonly ca?: string | Buffer | ReadonlyArray<string | Buffer>;
}

/** Name that an https upstream must prove; null where it is an address, which no SNI may carry (RFC 6066 section 3). */
export function certificateName(origin: URL): string | null {
  const host = origin.hostname.replace(/^\[|\]$/g, '');
  return isIP(host) === 0 ? host : null;
}

/**
 * undici takes the name to verify from the request's Host header, which with `host: preserve` is the client's word: any
 * certificate that fits it would do. Here only the configured target counts.
 */
export function connectorFor(origin: URL, timeoutMs: number, tls: TlsOptions): buildConnector.connector {
  const connect = buildConnector({
    allowH2: false,
    timeout: timeoutMs,
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2',
    ...(tls.ca === undefined
      ? {}
      : { ca: typeof tls.ca === 'string' || Buffer.isBuffer(tls.ca) ? tls.ca : [...tls.ca] }),
  });
  const servername = certificateName(origin) ?? '';
  return (options, callback) => {
    connect({ ...options, servername }, (error, socket) => {
      if (error !== null) return callback(error, null);
      makeHoldable(socket);
      watchEnd(socket);
      return callback(null, socket);
    });
  };
}
