import { readFileSync } from 'node:fs';
import { suggestion } from './did-you-mean.ts';

/** As the driver knows them; anything else it would pass over in silence, and verify as for verify-full or speak in clear. */
const modes = ['disable', 'prefer', 'require', 'verify-ca', 'verify-full', 'no-verify'];
const files = ['sslrootcert', 'sslcert', 'sslkey'];
const known = ['ssl', 'sslmode', 'sslnegotiation', ...files];

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

function fileFault(name: string, path: string): string | null {
  try {
    if (readFileSync(path, 'latin1').includes('-----BEGIN ')) return null;
    return `names a file with no certificate or key in PEM form, ${name}=${path}; write the path of a PEM file`;
  } catch (error) {
    const { code = 'unreadable' } = error as { code?: string };
    return `names a file that cannot be read (${code}), ${name}=${path}; write the path of a PEM file on this machine`;
  }
}
