import t from 'tap';
import { type Given, givenAnswer } from '../../src/core/given-answer.ts';
import { createMemos } from '../../src/core/memos.ts';
import { decodeStored } from '../../src/core/response.ts';

const memos = createMemos();

const given = (changes: Partial<Given> = {}) =>
  givenAnswer(memos, { status: 201, headers: [], body: Buffer.from('{}'), ...changes });

t.test('an answer is stored as an upstream would have it stored', (t) => {
  const headers = [
    'Content-Type: application/json',
    'Location:/charges/1',
    'X-Empty: ',
    'X-Twice: a',
    'X-Twice: b:c',
    'A:1',
  ];
  const result = given({ headers });
  if (result.kind !== 'answer') throw new Error(result.text);
  const { answer } = result;
  t.match(answer, { status: 201, body: Buffer.from('{}'), closeFramed: false });
  const stored = 'Content-Type|application/json|Location|/charges/1|X-Empty||X-Twice|a|X-Twice|b:c|A|1';
  t.strictSame(decodeStored(memos, answer.headers), stored.split('|'));
  t.match(given({ status: 204, body: Buffer.alloc(0) }), {
    kind: 'answer',
    answer: { body: Buffer.alloc(0) },
  });
  for (const status of [200, 599]) t.match(given({ status }), { kind: 'answer', answer: { status } });
  t.end();
});

t.test('what could not be replayed is told, not dropped', (t) => {
  const faults: [Partial<Given>, RegExp][] = [
    [{ status: 199 }, /from 200 to 599/],
    [{ status: 600 }, /from 200 to 599/],
    [{ status: Number.NaN }, /from 200 to 599/],
    [{ status: 204 }, /204 has no body/],
    [{ status: 304 }, /304 has no body/],
    [{ headers: ['Content-Type'] }, /written 'Name: value', not 'Content-Type'/],
    [{ headers: [': x'] }, /written 'Name: value'/],
    [{ headers: ['Set-Cookie: a=b'] }, /^Set-Cookie is never stored/],
    [{ headers: ['X-A: 1', 'content-length: 2'] }, /^content-length is never stored/],
    [{ headers: ['Connection: close'] }, /^Connection is never stored/],
    [{ headers: ['Oncegate-Outcome: executed'] }, /^Oncegate-Outcome is never stored/],
    [{ headers: ['X Y: 1'] }, /^X Y is never stored/],
    [{ headers: ['X-A: 1\r\nSet-Cookie: a=b'] }, /^the value of X-A has letters/],
    [{ headers: ['X-A: 20 €'] }, /^the value of X-A has letters/],
  ];
  for (const [changes, text] of faults) t.match(given(changes), { kind: 'fault', text }, String(text));
  t.end();
});
