import t from 'tap';
import { createMemos } from '../../src/core/memos.ts';
import {
  ambiguousPath,
  framingFault,
  type UpstreamHeaderOptions,
  upstreamHeaders,
} from '../../src/core/request.ts';

const memos = createMemos();

const options: UpstreamHeaderOptions = {
  sources: ['idempotency-key', 'x-idempotency-key'],
  forwardKey: { kind: 'keep' },
  key: 'k 1',
  attempt: 'attempt-1',
  epoch: '7',
  forwarded: { for: '192.0.2.1', proto: 'https', host: 'api.example' },
  host: 'upstream:3000',
  requestId: 'req-1',
  tenantHeader: null,
};

const ours = [
  'x-forwarded-for',
  '192.0.2.1',
  'x-forwarded-proto',
  'https',
  'x-forwarded-host',
  'api.example',
  'x-request-id',
  'req-1',
  'oncegate-attempt',
  'attempt-1',
  'oncegate-epoch',
  '7',
  'accept-encoding',
  'identity',
];

/** What of the client's headers goes upstream; fails where ours are not all there. */
function forwarded(
  t: Tap,
  rawHeaders: readonly string[],
  changes: Partial<UpstreamHeaderOptions> = {},
): string[] {
  const headers = upstreamHeaders(memos, rawHeaders, { ...options, ...changes });
  t.strictSame(headers.slice(0, 2), ['host', 'upstream:3000']);
  t.strictSame(headers.slice(2, 2 + ours.length), ours);
  return headers.slice(2 + ours.length);
}
type Tap = Pick<typeof t, 'strictSame'>;

t.test('ordinary headers go as they came', (t) => {
  const headers = [
    'Content-Type',
    'a/b',
    'Cookie',
    'a',
    'X-A',
    '1',
    'X-A',
    '2',
    'Authorization',
    'Bearer x',
    'traceparent',
    '00',
    'client_id',
    '1',
  ];
  t.strictSame(forwarded(t, headers), headers);
  t.strictSame(forwarded(t, []), []);
  t.end();
});

t.test('dropped: hop-by-hop, framing, what Connection names, what only we may say', (t) => {
  const names = [
    'Connection',
    'Keep-Alive',
    'Proxy-Connection',
    'Transfer-Encoding',
    'TE',
    'Trailer',
    'Upgrade',
  ];
  names.push('Expect', 'Content-Length', 'Host', 'Accept-Encoding', 'X-Request-Id', 'Forwarded');
  names.push(
    'X-Forwarded-For',
    'X-Forwarded-Host',
    'X-Forwarded-Proto',
    'X-Forwarded-Port',
    'X-Forwarded-Anything',
  );
  names.push('Oncegate-Attempt', 'Oncegate-Epoch', 'Oncegate-Anything');
  for (const name of names) {
    for (const spelled of [name, name.toUpperCase(), name.replaceAll('-', '_')]) {
      t.strictSame(forwarded(t, ['A', '1', spelled, 'x', 'B', '2']), ['A', '1', 'B', '2'], spelled);
    }
  }
  t.strictSame(forwarded(t, ['Connection', 'close, X-Hop', 'x-hop', '1', 'X-Other', '2']), ['X-Other', '2']);
  t.end();
});

t.test('twins: names that a CGI-like upstream reads as ones we checked', (t) => {
  const twins = [
    'Idempotency_Key',
    'X_Idempotency_Key',
    'x-idempotency_key',
    'Oncegate_Attempt',
    'X_Forwarded_For',
    'X-Request_Id',
  ];
  twins.push('Content_Type', 'Content_Encoding', 'If_Match', 'Transfer_Encoding', 'Content_Length');
  for (const name of twins) t.strictSame(forwarded(t, [name, 'x']), [], name);
  for (const name of twins) t.strictSame(forwarded(t, [name.replaceAll(/[-_]/g, '.'), 'x']), [], name);
  for (const name of ['Content.Type', 'if~match', 'Content!Length'])
    t.strictSame(forwarded(t, [name, 'x']), []);
  t.strictSame(forwarded(t, ['X_Tenant', 'x']), ['X_Tenant', 'x']);
  const variants = ['X_Tenant', 'x', 'X.Tenant', 'x', 'X-Tenant', 'y', 'x~tenant', 'x'];
  t.strictSame(forwarded(t, variants, { tenantHeader: 'x-tenant' }), ['X-Tenant', 'y']);
  t.strictSame(forwarded(t, variants, { tenantHeader: 'x.tenant' }), ['X.Tenant', 'x']);
  const underscored = { sources: ['idempotency_key'] };
  t.strictSame(
    forwarded(t, ['Idempotency_Key', 'x'], underscored),
    ['Idempotency_Key', 'x'],
    'unless it is a source itself',
  );
  t.end();
});

t.test('the key: kept, stripped, renamed', (t) => {
  const headers = ['Idempotency-Key', '"k 1"', 'A', '1', 'X-IDEMPOTENCY-KEY', '"k 1"'];
  t.strictSame(forwarded(t, headers), headers, 'as the client sent it');
  t.strictSame(forwarded(t, headers, { forwardKey: { kind: 'strip' } }), ['A', '1']);
  const rename = { forwardKey: { kind: 'rename', header: 'PayPal-Request-Id' } } as const;
  t.strictSame(
    forwarded(t, headers, rename),
    ['PayPal-Request-Id', '"k 1"', 'A', '1'],
    'quoted where it has to be',
  );
  t.strictSame(forwarded(t, headers, { ...rename, key: 'k1' }), ['PayPal-Request-Id', 'k1', 'A', '1']);
  const sent = ['paypal-request-id', 'forged', 'PayPal_Request_Id', 'forged', 'A', '1'];
  t.strictSame(forwarded(t, sent, { ...rename, key: 'k1' }), ['PayPal-Request-Id', 'k1', 'A', '1']);
  t.strictSame(
    forwarded(t, sent, { forwardKey: { kind: 'strip' } }),
    sent,
    'the name is nothing to other policies',
  );
  t.end();
});

/** With a Host unless it has one. */
function fault(flat: readonly string[], minor = 1): string | undefined {
  const rawHeaders = /host/i.test(flat.join()) ? flat : [...flat, 'Host', 'a'];
  return framingFault({ httpVersionMajor: 1, httpVersionMinor: minor, rawHeaders })?.code;
}

t.test('framing that two readers may see in two ways, or that we cannot carry', (t) => {
  t.equal(fault([]), undefined);
  t.equal(fault(['Host', 'a', 'Content-Length', '1', 'Content-Type', 'application/json']), undefined);
  t.equal(fault(['Host', 'a', 'Content-Length', '1'], 0), undefined, 'HTTP/1.0 as such is fine');
  t.equal(fault(['Host', 'a', 'Transfer-Encoding', 'chunked']), undefined);
  t.equal(fault(['Host', 'a', 'transfer-encoding', 'Chunked']), undefined);
  t.equal(
    fault(['Xost', 'a', 'Xontent-Type', 'application/grpc', 'Xontent-Length', '1', 'Xransfer-Encoding', 'x']),
    undefined,
  );
  t.equal(fault(['Host', 'a', 'Date', 'b']), undefined, 'as long as Host');
  t.equal(
    fault(['Transfer-Encoding', 'chunked', 'Accept-Charset', '1']),
    undefined,
    'as long as Content-Length',
  );

  const hostless = { httpVersionMajor: 1, rawHeaders: ['Hosx', 'a'] };
  t.equal(framingFault({ ...hostless, httpVersionMinor: 1 })?.code, 'request_invalid');
  t.equal(framingFault({ ...hostless, httpVersionMinor: 0 }), null, 'HTTP/1.0 has no Host');
  t.equal(fault(['Host', 'a', 'HOST', 'a']), 'request_invalid');
  t.equal(fault(['Transfer-Encoding', 'chunked'], 0), 'request_invalid');
  t.equal(fault(['Transfer-Encoding', 'chunked', 'Content-Length', '1']), 'request_invalid');
  t.equal(fault(['Content-Length', '1', 'Transfer-Encoding', 'gzip, chunked']), 'request_invalid');
  for (const coding of ['gzip, chunked', 'gzip', 'identity', 'chunked, chunked', 'xchunked', '']) {
    t.equal(fault(['Transfer-Encoding', coding]), 'not_supported', coding);
  }
  t.equal(fault(['Transfer-Encoding', 'chunked', 'Transfer-Encoding', 'chunked']), 'not_supported');
  t.end();
});

t.test('more fields than some upstreams read', (t) => {
  const flat = (count: number) => ['Host', 'a', ...Array.from({ length: count - 1 }, () => ['a', '']).flat()];
  t.equal(fault(flat(980)), undefined);
  const facts = { httpVersionMajor: 1, httpVersionMinor: 1, rawHeaders: flat(981) };
  t.match(framingFault(facts), {
    code: 'request_invalid',
    status: 431,
    detail: /over 980 .+: send fewer\./,
  });
  t.end();
});

t.test('a client that names no host', (t) => {
  const host = { for: '192.0.2.1', proto: 'http', host: '' };
  t.notOk(upstreamHeaders(memos, [], { ...options, forwarded: host }).includes('x-forwarded-host'));
  t.end();
});

t.test('gRPC', (t) => {
  for (const type of [
    'application/grpc',
    'Application/gRPC+proto',
    'application/grpc-webs',
    ' application/grpc; a=b',
  ]) {
    t.equal(fault(['Content-Type', type]), 'not_supported', type);
  }
  t.equal(fault(['Content-Type', 'text/plain', 'Content-Type', 'application/grpc']), 'not_supported');
  t.equal(fault(['Content-Type', 'application/grpc', 'Content-Type', 'text/plain']), 'not_supported');
  for (const type of [
    'text/application/grpc',
    'application/grpc-web',
    'application/gRPC-Web-text+proto; a=b',
  ])
    t.equal(fault(['Content-Type', type]), undefined, type);
  t.end();
});

t.test('every fault says what to send', (t) => {
  const faults = [
    ['Host', 'a', 'Host', 'b'],
    ['Transfer-Encoding', 'x'],
    ['Transfer-Encoding', 'chunked', 'Content-Length', '1'],
  ];
  for (const flat of [...faults, ['Content-Type', 'application/grpc'], []]) {
    const rawHeaders = flat.length === 0 || flat[0] === 'Host' ? flat : ['Host', 'a', ...flat];
    t.match(framingFault({ httpVersionMajor: 1, httpVersionMinor: 1, rawHeaders })?.detail, /: send .+\.$/);
  }
  const old = { httpVersionMajor: 1, httpVersionMinor: 0, rawHeaders: ['Transfer-Encoding', 'chunked'] };
  t.match(framingFault(old)?.detail, /HTTP\/1\.0 .+: send Content-Length/);
  t.end();
});

t.test('paths that servers read in different ways', (t) => {
  const clear = [
    '/',
    '/a',
    '/a/',
    '/v1/charges/ch_1/capture',
    '/.well-known/x',
    '/a.b',
    '/..a',
    '/a..',
    '/...',
    '/a/.../b',
  ];
  clear.push(
    '/a%20b',
    '/caf%C3%A9',
    '/%E2%82%AC',
    '/a;v=1',
    '/a;/b',
    '/a/;x',
    '/;jsessionid=1',
    '/a%252e',
    '/a%3Fb',
    '/a%3bb',
    '/~a',
    '/a=b&c',
    '/a:b@c',
    '/%2ea',
    '/.a/b',
  );
  // Greek, Cyrillic, Devanagari, an emoji; raw too; and Latin-1.
  clear.push(
    '/%CE%B1',
    '/%D0%80',
    '/%E0%A4%85',
    '/%F0%9F%98%80',
    '/\xd0\x80',
    '/\xe0\xa4\x85',
    '/caf%E9',
    '/caf\xe9',
  );
  for (const path of clear) t.notOk(ambiguousPath(path), path);
  const unclear = [
    '',
    '*',
    'a',
    'http://a/b',
    '/.',
    '/..',
    '/./',
    '/../',
    '/a/..',
    '/a/../b',
    '/a/./b',
    '/%2e',
    '/a/%2E%2e/b',
    '/.%2e',
    '/a/%2e.',
  ];
  unclear.push(
    '/..;/a',
    '/a/.;x',
    '/a/..%3Bx/b',
    '/a/.%3b',
    '/;/a',
    '/a/;x=1/b',
    '/a/%3bx/b',
    '/a%2fb',
    '/a%2Fb',
    '/a%5cb',
    '/a%5Cb',
    '/a\\b',
    '//',
    '//a',
    '/a//b',
    '/a//',
    '/a%00',
    '/a%1F',
    '/a%0d%0aX',
    '/a%7f',
  );
  unclear.push(
    '/a%',
    '/a%2',
    '/a%zz',
    '/a%u002f',
    '/a%c0%af',
    '/a%C1%9c',
    '/a%e0%80%af',
    '/a%E0%9F%BF',
    '/a%F0%80%80%AF',
    '/a%f0%8F%bf%bf',
    '/a%F8%80%80%80%AF',
    '/a%FC%80',
    '/a\xe0\x80\xaf',
    '/a\xc0\xaf',
    '/a\xf0\x80\x80\xaf',
    '/a%e0\x80%af',
    '/a#b',
    '/#',
  );
  for (const path of unclear) t.ok(ambiguousPath(path), path);
  t.end();
});

t.test('versions other than 1.0 and 1.1 are not carried, nor unknown expectations', async (t) => {
  const rawHeaders = ['Host', 'a'];
  for (const [httpVersionMajor, httpVersionMinor] of [
    [0, 9],
    [2, 0],
    [1, 2],
  ] as const)
    t.match(framingFault({ httpVersionMajor, httpVersionMinor, rawHeaders }), {
      code: 'not_supported',
      status: 505,
    });
  const one = { httpVersionMajor: 1, httpVersionMinor: 1 };
  t.match(framingFault({ ...one, rawHeaders: [...rawHeaders, 'Expect', 'tea'] }), {
    code: 'not_supported',
    status: 417,
  });
  t.equal(framingFault({ ...one, rawHeaders: [...rawHeaders, 'expect', '100-Continue'] }), null);
  t.equal(framingFault({ ...one, httpVersionMinor: 0, rawHeaders: [...rawHeaders, 'Expect', 'tea'] }), null);
});
