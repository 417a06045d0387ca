import fc from 'fast-check';
import t from 'tap';
import { createMemos } from '../../src/core/memos.ts';
import {
  clientHeaders,
  connectionNames,
  decodeStored,
  encodeStored,
  replayStatus,
} from '../../src/core/response.ts';

const memos = createMemos();

t.test('the first client gets everything but what speaks about one connection, or for us', (t) => {
  const kept = [
    'Content-Type',
    'text/plain',
    'Set-Cookie',
    'a=1',
    'Set-Cookie',
    'b=2',
    'ETag',
    '"1"',
    'Age',
    '3',
    'Date',
    'x',
  ];
  t.strictSame(clientHeaders(memos, kept), kept, 'order, case and repeated headers stay');
  const dropped = [
    'Connection',
    'Keep-Alive',
    'Proxy-Connection',
    'Transfer-Encoding',
    'TE',
    'Trailer',
    'Upgrade',
    'Content-Length',
    'Idempotency-Status',
    'Idempotent-Replayed',
    'Idempotency-Expires',
    'X-Request-Id',
    'Oncegate-Outcome',
    'Oncegate-Attempt',
    'Oncegate-Anything',
  ];
  for (const name of dropped) {
    for (const spelled of [name, name.toLowerCase(), name.toUpperCase()]) {
      t.strictSame(clientHeaders(memos, ['A', '1', spelled, 'x', 'B', '2']), ['A', '1', 'B', '2'], spelled);
    }
  }
  t.strictSame(clientHeaders(memos, []), []);
  t.end();
});

t.test('what Connection names is dropped too', (t) => {
  const flat = [
    'X-Hop',
    '1',
    'Connection',
    'close, x-hop',
    'X-Other',
    '2',
    'connection',
    'X-THIRD',
    'X-Third',
    '3',
    'Keep',
    '4',
  ];
  t.strictSame(clientHeaders(memos, flat), ['X-Other', '2', 'Keep', '4']);
  t.strictSame([...connectionNames(memos, flat)], ['close', 'x-hop', 'x-third']);
  t.equal(connectionNames(memos, ['Xonnection', 'a', 'Host', 'b']).size, 0);
  t.strictSame([...connectionNames(memos, ['connection', 'X-Hop, close'])], ['x-hop', 'close']);
  t.end();
});

const neverReplayed = [
  'Set-Cookie',
  'Set-Cookie2',
  'Authorization',
  'Authentication-Info',
  'Proxy-Authenticate',
];
neverReplayed.push(
  'Proxy-Authentication-Info',
  'Age',
  'Date',
  'Oncegate-Outcome',
  'Content-Length',
  'X-Request-Id',
);

t.test('what is stored comes back: order, case, repeated headers, every byte', (t) => {
  const flat = [
    'Content-Type',
    'text/plain',
    'Link',
    '<a>',
    'Link',
    '<b>',
    'X-Empty',
    '',
    'X-Latin',
    'caf\xe9\t\xff',
  ];
  t.strictSame(decodeStored(memos, encodeStored(memos, flat)), flat);
  t.strictSame(decodeStored(memos, encodeStored(memos, [])), []);
  t.equal(encodeStored(memos, flat)[0], 1, 'the version stands first');
  const name = fc.string({ unit: fc.constantFrom(...'abcXYZ019-_!#$%&*+.^`|~'.split('')), minLength: 1 });
  const value = fc.string({
    unit: fc
      .integer({ min: 0x20, max: 0xff })
      .filter((c) => c !== 0x7f)
      .map((c) => String.fromCharCode(c)),
  });
  fc.assert(
    fc.property(
      fc.array(
        fc.tuple(
          fc.constant('x-').chain((x) => name.map((n) => x + n)),
          value,
        ),
      ),
      (pairs) => {
        const list = pairs.flat().map(String);
        const wanted = clientHeaders(memos, list);
        t.strictSame(decodeStored(memos, encodeStored(memos, wanted)), wanted);
      },
    ),
    { numRuns: 30 },
  );
  t.end();
});

t.test('what is meant for one client, or cannot be sent again, is not stored', (t) => {
  for (const name of neverReplayed) {
    t.strictSame(
      decodeStored(memos, encodeStored(memos, ['A', '1', name.toUpperCase(), 'x', 'B', '2'])),
      ['A', '1', 'B', '2'],
      name,
    );
    t.strictSame(decodeStored(memos, encodeStored(memos, [name, 'x'])), [], name);
  }
  for (const [name, value] of [
    ['X', 'a\0Set-Cookie\0b'],
    ['X', 'a\r\nb'],
    ['X', '\u0100'],
    ['X\0Y', 'a'],
    ['', 'a'],
    ['X Y', 'a'],
  ]) {
    t.strictSame(decodeStored(memos, encodeStored(memos, ['A', '1', name as string, value as string])), [
      'A',
      '1',
    ]);
  }
  t.end();
});

t.test('a name beyond latin1 is not taken for the name that its bytes spell', (t) => {
  clientHeaders(memos, ['X-Cont\u0165nt', 'a']);
  t.strictSame(decodeStored(memos, encodeStored(memos, ['X-Content', 'a'])), ['X-Content', 'a']);
  t.end();
});

t.test('a stored list is checked again when it is read', (t) => {
  const stored = (text: string) => decodeStored(memos, Buffer.from(text, 'latin1'));
  t.strictSame(stored('\x01A\x001'), ['A', '1']);
  for (const broken of [
    '',
    'A\x001',
    '\x00A\x001',
    '\x02A\x001',
    '\x01A',
    '\x01A\x001\x00',
    '\x01A\x001\x00B',
    '\x01\x001',
  ]) {
    t.equal(stored(broken), null, JSON.stringify(broken));
  }
  for (const broken of [
    'A B\x001',
    'A:\x001',
    'A\x001\r\nB: 2',
    'A\x00\n',
    'A\x00\x7f',
    'A\x00\x01',
    '\xe9\x001',
    'A\x001\x00\x002',
  ]) {
    t.equal(stored(`\x01${broken}`), null, JSON.stringify(broken));
  }
  for (const name of neverReplayed) {
    t.strictSame(stored(`\x01A\x001\x00${name}\x00x`), ['A', '1'], `${name}, stored by an older version`);
  }
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) => {
      for (const text of decodeStored(memos, Buffer.from([1, ...bytes])) ?? []) t.notMatch(text, /[\r\n\0]/);
    }),
  );
  t.end();
});

t.test('replay status', (t) => {
  for (const status of [200, 201, 202, 204, 301, 404, 500]) t.equal(replayStatus(status, 'original'), status);
  t.equal(replayStatus(201, 200), 200);
  for (const status of [200, 202, 204, 301, 404, 500]) t.equal(replayStatus(status, 200), status);
  t.end();
});
