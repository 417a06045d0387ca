import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { suggestion } from './did-you-mean.ts';

/** As the driver knows them; anything else it would pass over in silence, and verify as for verify-full or speak in clear. */
const modes = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'];
const files = ['sslrootcert', 'sslcert', 'sslkey'];
const known = ['ssl', 'sslmode', 'sslnegotiation', ...files];
/** `false` is not one: the driver takes it for a mode that it does not know, and breaks in the middle of TLS. */
const switches = ['true', '1', '0', 'no-verify'];
const negotiations = ['postgres', 'direct'];
export const severalHosts =
  'names several hosts; write one, whose name leads to the primary, as a load balancer or the provider gives it';

/**
 * What is wrong with the query of the store's URL, or null. Only what is about TLS or where the server is: other names are for the
 * driver, the server or another client of the same URL. Files are looked at here, for the driver would throw at the first connection.
 */
export function storeQueryFault(query: URLSearchParams): string | null {
  for (const [name, value] of query) {
    if (/^ssl/i.test(name) && !known.includes(name))
      return `holds an unknown parameter, ${name}; ${suggestion(name, known)}`;
    if (name === 'sslmode' && !modes.includes(value))
      return `has an sslmode that is not known; ${suggestion(value, modes)} (verify-full checks certificate and host)`;
    if (name === 'ssl' && !switches.includes(value))
      return 'has an ssl that is not known; write sslmode=verify-full instead (TLS; certificate and host are checked), or sslmode=disable (no TLS)';
    if (name === 'sslnegotiation' && !negotiations.includes(value))
      return `has an sslnegotiation that is not known; ${suggestion(value, negotiations)}`;
    if (name === 'host' && value.includes(',')) return severalHosts;
    if (name === 'port' && !isPort(value)) return 'has a port that is none; write a number from 1 to 65535';
    if (files.includes(name)) {
      const fault = fileFault(name, value);
      if (fault !== null) return fault;
    }
  }
  if (query.has('sslcert') !== query.has('sslkey'))
    return 'has one of sslcert and sslkey without the other; write both, the certificate and its key';
  if (
    query.get('uselibpqcompat') === 'true' &&
    query.get('sslmode') === 'verify-ca' &&
    !query.has('sslrootcert')
  )
    return 'has sslmode=verify-ca without sslrootcert; write sslrootcert=FILE, or sslmode=verify-full';
  return null;
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) >= 1 && Number(text) <= 65_535;
}

function fileFault(name: string, path: string): string | null {
  try {
    const pem = readFileSync(path);
    if (!pem.includes('-----BEGIN '))
      return `names a file with no certificate or key in PEM form, ${name}=${path}; write the path of a PEM file`;
    // TLS passes over an authority that it cannot read, and then trusts nobody.
    if (name === 'sslrootcert' && !isCertificate(pem))
      return `names a file with no certificate in it, ${name}=${path}; write the path of a PEM file with that of the authority`;
    return null;
  } catch (error) {
    const { code = 'unreadable' } = error as { code?: string };
    return `names a file that cannot be read (${code}), ${name}=${path}; write the path of a PEM file on this machine`;
  }
}

function isCertificate(pem: Buffer): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}
