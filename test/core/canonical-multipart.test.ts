import t from 'tap';
import { canonicalMultipart } from '../../src/core/canonical-multipart.ts';

const canonical = (body: string, boundary = 'b') => canonicalMultipart(Buffer.from(body), boundary);

t.test('preamble, parts, epilogue', async (t) => {
  t.equal(canonical('--b--'), '0:0:');
  t.equal(canonical('pre\r\n--b\r\none\r\n--b\r\ntwo\r\n--b--post'), '3:pre3:one3:two4:post');
});

t.test('none where a reader could see other parts', async (t) => {
  t.equal(canonical('----', ''), null, 'an empty boundary');
  t.equal(canonical('--\r\none\r\n----', ''), null, 'an empty boundary, with a part');
  t.equal(canonical('abcd--'), null, 'no delimiter at all');
  t.equal(canonical('a--'), null);
  t.equal(canonical('--b\r\none'), null, 'not closed');
  t.equal(canonical('abcd--\r\n--b\r\none'), null, 'not closed, and what looks like an end before it');
  t.equal(canonical('abcdef--\r\n--b\r\none'), null);
  t.equal(canonical('--bx--'), null, 'another boundary');
});

t.test('a boundary is 1 to 70 characters of RFC 2046, the last no space', async (t) => {
  for (const boundary of ['b'.repeat(70), "09azAZ'()+_,-./:=? x", '-', "'"])
    t.equal(canonical(`--${boundary}--`, boundary), '0:0:', boundary);
  for (const boundary of ['b'.repeat(71), 'b ', ' ', 'a"b', 'a;b', 'a@b', 'a\tb', 'é', 'a\r\nb', 'a\n'])
    t.equal(canonical(`--${boundary}--`, boundary), null, boundary);
});

t.test('what begins as a delimiter is none', async (t) => {
  t.equal(canonical('--bcd\r\n\r\n--bc\r\n--bcx\r\n--bcd--', 'bcd'), '0:13:\r\n--bc\r\n--bcx0:');
  t.equal(canonical('x\r\n--bc\r\n--bcd--', 'bcd'), '7:x\r\n--bc0:');
  t.equal(canonical('--bcd\r\n\r\n--\r\n--bcd--', 'bcd'), '0:4:\r\n--0:');
});
