/** Where a listener binds. */
export interface Address {
  /** Without the brackets of IPv6. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

const pattern = /^(?:\[([0-9a-f:.]+(?:%[\w.-]+)?)\]|([\w.-]+)):(\d{1,5})$/i;

/** `127.0.0.1:8080`, `localhost:0`, `[::1]:8080`; null if it is none. */
export function parseAddress(text: string): Address | null {
  const found = pattern.exec(text);
  const port = Number(found?.[3]);
  const host = found?.[1] ?? found?.[2];
  return host === undefined || port > 65_535 ? null : { host, port };
}

/** What is wrong with an address and what to write instead. */
export function addressFault(input: unknown): string {
  const text = typeof input === 'number' ? String(input) : input;
  if (typeof text !== 'string') return 'is not an address; write host:port, for instance 0.0.0.0:8080';
  if (/^:?\d{1,5}$/.test(text))
    return `has no host; write 0.0.0.0:${text.replace(':', '')}, or 127.0.0.1:… for this machine alone`;
  if (/^https?:/.test(text)) return 'is a URL; write host:port, for instance 0.0.0.0:8080';
  const port = /:(\d+)$/.exec(text)?.[1];
  if (port !== undefined && Number(port) > 65_535) return `has a port over 65535; write one from 0 to 65535`;
  if (/^[0-9a-f]*:[0-9a-f:.]*:/i.test(text)) return 'is IPv6 without brackets; write [::1]:8080';
  return 'is not an address; write host:port, for instance 0.0.0.0:8080';
}
