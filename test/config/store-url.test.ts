import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { storeUrlFault } from '../../src/config/urls.ts';
import { selfSigned } from '../upstream/certificate.ts';

const dir = mkdtempSync(join(tmpdir(), 'oncegate-url-'));
t.teardown(() => rmSync(dir, { recursive: true }));
const pem = join(dir, 'ca.crt');
writeFileSync(pem, selfSigned('DNS:db'));
const torn = join(dir, 'torn.crt');
writeFileSync(torn, '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n');
const other = join(dir, 'ca.der');
writeFileSync(other, Buffer.from([0x30, 0x82]));

t.test('what is wrong with the URL of the store, and what to write', async (t) => {
  const at = (query: string) => `postgres://app:hidden@db:5432/orders?${query}`;
  const faults: readonly (readonly [url: string, fault: RegExp])[] = [
    [at('sslmode=bogus'), /sslmode that is not known; write one of disable, .*verify-full/],
    [at('sslmode=verify-ful'), /did you mean verify-full\?/],
    [at('sslmode='), /sslmode that is not known/],
    [at('sslrootcrt=/x'), /unknown parameter, sslrootcrt; did you mean sslrootcert\?/],
    [at('ssl_mode=require'), /unknown parameter, ssl_mode; did you mean sslmode\?/],
    [at('SSLMODE=require'), /unknown parameter, SSLMODE; did you mean sslmode\?/],
    [
      at(`sslrootcert=${dir}/none`),
      /cannot be read \(ENOENT\), sslrootcert=.*none; write the path of a PEM file/,
    ],
    [at(`sslrootcert=${dir}`), /cannot be read \(EISDIR\)/],
    [at('sslrootcert=system'), /cannot be read \(ENOENT\), sslrootcert=system/],
    [at(`sslrootcert=${other}`), /no certificate or key in PEM form/],
    [at(`sslrootcert=${torn}`), /no certificate in it, sslrootcert=.*torn/],
    [at('ssl=false'), /ssl that is not known; write sslmode=verify-full .*sslmode=disable/],
    [at('ssl=bogus'), /ssl that is not known/],
    [at('sslnegotiation=dirct'), /sslnegotiation that is not known; did you mean direct\?/],
    [at('port=abc'), /port that is none; write a number/],
    [at('port=99999'), /port that is none/],
    [at('host=a,b'), /names several hosts; write one/],
    ['postgres://app:hidden%ff@db/orders', /a % that encodes no character; .*%25 for %/],
    ['postgres://app:hidden@db/orders%e4', /a % that encodes no character/],
    [at(`sslcert=${pem}`), /without the other; write both/],
    [at(`sslcert=${pem}&sslkey=${dir}/none`), /sslkey=.*none/],
    [at('uselibpqcompat=true&sslmode=verify-ca'), /verify-ca without sslrootcert; write sslrootcert=FILE/],
    ['postgres://app:hidden@a:5432,b:5432/orders', /names several hosts; write one/],
    ['postgres://app:hidden@a,b/orders', /names several hosts/],
    [
      'postgres://app:hidden@/orders?host=/run',
      /no host; for a socket file write .*@localhost\/database\?host=/,
    ],
    ['postgres://app:hid/den@db/orders', /percent-encode/],
  ];
  for (const [url, fault] of faults) {
    const found = storeUrlFault(url);
    t.match(found, fault, url);
    t.notMatch(found, 'hidden', 'the password is not repeated');
  }
});

t.test('what the driver takes', async (t) => {
  for (const url of [
    `postgres://app@db/orders?sslmode=verify-full&sslrootcert=${pem}&sslcert=${pem}&sslkey=${pem}`,
    'postgres://app@db/orders?sslmode=no-verify',
    'postgres://app:100%@db/orders?ssl=true&sslnegotiation=direct&port=5433',
    'postgres://%2Frun%2Fpostgresql/orders?ssl=0',
    'postgres://app:a%2Cb@db/orders?sslmode=require&channel_binding=require',
    'postgres://app@localhost/orders?host=/var/run/postgresql&application_name=x',
    'postgres:///orders?host=/var/run/postgresql',
  ])
    t.equal(storeUrlFault(url), null, url);
});
