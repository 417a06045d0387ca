import t from 'tap';
import { addressFault, parseAddress } from '../../src/config/address.ts';

t.test('addresses', async (t) => {
  t.same(parseAddress('0.0.0.0:8080'), { host: '0.0.0.0', port: 8080 });
  t.same(parseAddress('localhost:0'), { host: 'localhost', port: 0 });
  t.same(parseAddress('[::1]:8080'), { host: '::1', port: 8080 });
  t.same(parseAddress('[fe80::1%eth0]:80'), { host: 'fe80::1%eth0', port: 80 });
  for (const text of [
    '',
    '8080',
    ':8080',
    'host',
    'host:',
    'host:65536',
    '::1:80',
    '[::1]',
    'http://h:80',
    'a b:1',
  ]) {
    t.equal(parseAddress(text), null, text);
  }
});

t.test('what to write instead', async (t) => {
  const rows: [input: unknown, text: string][] = [
    [8080, 'write 0.0.0.0:8080'],
    [':8080', 'write 0.0.0.0:8080'],
    ['http://h:80', 'is a URL'],
    ['h:70000', 'over 65535'],
    ['::1:80', 'write [::1]:8080'],
    ['host', 'write host:port'],
    [true, 'write host:port'],
  ];
  for (const [input, text] of rows)
    t.ok(addressFault(input).includes(text), `${String(input)}: ${addressFault(input)}`);
});
