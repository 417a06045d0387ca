import { severalHosts, storeQueryFault } from './store-url-query.ts';

/** What is wrong with an upstream's URL and what to write instead, or null. Never repeats credentials. */
export function originFault(text: string): string | null {
  if (!/^https?:\/\//i.test(text)) {
    const bare = /^[\w.-]+(:\d+)?$/.test(text) || /^\[[0-9a-f:.]+\](:\d+)?$/i.test(text);
    return `must start with http:// or https://; write ${bare ? `http://${text}` : 'for instance http://127.0.0.1:3000'}`;
  }
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null) return 'is not a URL; write for instance http://127.0.0.1:3000';
  if (url.username !== '' || url.password !== '')
    return `holds credentials; write ${url.origin} (clients send their own)`;
  if (url.pathname !== '/' || /[?#]/.test(text)) {
    return `holds a path or query; write ${url.origin} (each request's own path is forwarded unchanged)`;
  }
  return null;
}

/**
 * The same for the origin of pages, which must be as browsers send it in Origin. Apps in a web view have schemes of their own.
 * `null` is not taken: any page can make itself one of that origin, in a sandboxed frame.
 */
export function pageOriginFault(text: string): string | null {
  if (text === '*') return null;
  const match = /^([a-z][a-z0-9+.-]*):\/\/[^/?#@\s,*]+/i.exec(text);
  if (match === null) return "is not the origin of a page; write for instance https://shop.example, or '*'";
  const isWeb = /^https?$/i.test(match[1] as string);
  if (isWeb && !URL.canParse(text)) return 'is not a URL; write for instance https://shop.example';
  const origin = isWeb ? new URL(text).origin : match[0].toLowerCase();
  return origin === text ? null : `is not as browsers send it; write ${origin}`;
}

/** The same for the store's URL; it holds a password, so nothing of it is ever repeated. */
export function storeUrlFault(text: string): string | null {
  if (!/^postgres(ql)?:\/\//.test(text))
    return 'must start with postgres://; write postgres://user:password@host:5432/database';
  const authority = /^\w+:\/\/([^/?#]*)/.exec(text)?.[1] ?? '';
  const hosts = authority.slice(authority.lastIndexOf('@') + 1);
  if (hosts.includes(',')) return severalHosts;
  if (hosts === '' && authority !== '')
    return 'has a user and no host; for a socket file write postgres://user:password@localhost/database?host=/directory';
  if (!URL.canParse(text)) {
    return 'is not a URL; percent-encode special characters of the password, for instance %40 for @ and %2F for /';
  }
  const { username, password, hostname, pathname, searchParams } = new URL(text);
  if (![username, password, hostname, pathname].every(isDecodable))
    return 'has a % that encodes no character; percent-encode special characters of the password, %25 for %';
  return storeQueryFault(searchParams);
}

/** As the driver decodes it, to whom a % that no two digits follow is itself. */
function isDecodable(part: string): boolean {
  try {
    return decodeURIComponent(part.replaceAll(/%(?![0-9a-f]{2})/gi, '%25')) !== null;
  } catch {
    return false;
  }
}
