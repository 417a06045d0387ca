/** Breakages of TLS to the store; the form is that of test/breakages.mjs. */
export const breakages = [
  {
    rule: 'a store whose certificate does not fit is not tried again',
    in: 'rows',
    find: "    /^(ERR_TLS_CERT_ALTNAME|HOSTNAME_MISMATCH)/,\n    'untrusted',",
    replace: "    /^(ERR_TLS_CERT_ALTNAME|HOSTNAME_MISMATCH)/,\n    'away',",
    test: 'test/store/tls.test.ts',
  },
  {
    rule: 'a store that offers no TLS is not tried again',
    in: 'rows',
    find: "    /does not support SSL/,\n    'refused',",
    replace: "    /does not support SSL/,\n    'away',",
    test: 'test/store/tls.test.ts',
  },
  {
    rule: 'a socket file that nobody listens on is named',
    in: 'isSocket',
    find: "return host.startsWith('/');",
    replace: "return host === '/';",
    test: 'test/store/tls.test.ts',
  },
];
