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
