import { readFileSync } from 'node:fs';
import t from 'tap';
import { problemCodes, problemReply } from '../../src/core/problem.ts';
import { type ErrorCode, OncegateError } from '../../src/errors.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

/** Heading → text below it. */
const sections = new Map(
  read('docs/errors.md')
    .split(/^## /m)
    .slice(1)
    .map((section) => {
      const end = section.indexOf('\n');
      return [section.slice(0, end), section.slice(end + 1)];
    }),
);

/** The value of `- Name: value` in a section. */
const fact = (section: string, name: string): string | undefined =>
  new RegExp(`^- ${name}: (.+)$`, 'm').exec(section)?.[1];

const documented = [...sections.keys()].filter((heading) => /^[a-z_]+$/.test(heading));

t.strictSame(documented, [...problemCodes], 'every problem has its section, in the order of the table');

for (const code of problemCodes) {
  t.test(code, async (t) => {
    const section = sections.get(code) ?? '';
    const ietf = problemReply(code, { dialect: 'ietf', requestId: 'r' });
    const stripe = problemReply(code, { dialect: 'stripe', requestId: 'r' });
    const { retryable } = JSON.parse(ietf.body) as { retryable: boolean };
    const { error } = JSON.parse(stripe.body) as { error: { type: string; code: string } };
    t.equal(fact(section, 'Status'), String(ietf.status));
    t.equal(fact(section, 'Retryable'), retryable ? 'yes' : 'no');
    t.equal(fact(section, 'Retry-After'), new Map(ietf.headers).get('Retry-After'));
    t.equal(fact(section, 'Stripe'), `${stripe.status} \`${error.type}\` \`${error.code}\``);
    for (const name of ['Why', 'Client', 'Operator']) t.ok(fact(section, name), name);
  });
}

t.test('every error has its section, with its exit code', async (t) => {
  const table = /const exitCodes = \{([\s\S]*?)\}/.exec(read('src/errors.ts'))?.[1] ?? '';
  const codes = [...table.matchAll(/^ {2}(\w+):/gm)].map(([, code]) => code as ErrorCode);
  t.ok(codes.length > 0);
  const wanted = codes.map((code) => `${code} (exit ${new OncegateError(code, '').exitCode})`);
  const written = [...sections.keys()].filter((heading) => /^\w+ \(exit/.test(heading));
  t.strictSame(written.sort(), wanted.sort());
  for (const heading of written) t.ok((sections.get(heading) ?? '').trim().length > 40, heading);
});

t.test('the example is what clients get', async (t) => {
  const example = /```json\n([\s\S]*?)```/.exec(read('docs/errors.md'))?.[1] ?? '{}';
  const { requestId, ...written } = JSON.parse(example) as { requestId: string };
  const sent = JSON.parse(problemReply('key_reused', { dialect: 'ietf', requestId }).body) as object;
  t.strictSame({ ...written, requestId }, sent);
});
