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

/** The same for the store's URL; it holds a password, so nothing of it is ever repeated. */
export function storeUrlFault(text: string): string | null {
  if (!/^postgres(ql)?:\/\//.test(text))
    return 'must start with postgres://; write postgres://user:password@host:5432/database';
  if (!URL.canParse(text)) {
    return 'is not a URL; percent-encode special characters of the password, for instance %40 for @ and %2F for /';
  }
  return null;
}
