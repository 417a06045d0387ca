/**
 * What the tests of core use of tap, and no more: tap itself takes ten times as long to load as they take to run. Compares
 * as tap does, with its own tcompare. A test ends at its first red assertion.
 */
import { match, same, strict } from 'tcompare';

/** Top-level tests of the file that is being loaded. */
export let collected = [];

export function startCollecting() {
  collected = [];
}

const check = (holds, what) => {
  if (!holds) throw new Error(what);
};

const assertions = {
  ok: (found, message) => check(found, message ?? 'not ok'),
  notOk: (found, message) => check(!found, message ?? 'ok'),
  equal: (found, wanted, message) =>
    check(Object.is(found, wanted), message ?? `${String(found)} is not ${String(wanted)}`),
  not: (found, other, message) => check(!Object.is(found, other), message ?? 'equal'),
  same: (found, wanted, message) => check(same(found, wanted).match, message ?? 'not the same'),
  strictSame: (found, wanted, message) => check(strict(found, wanted).match, message ?? 'not the same'),
  match: (found, pattern, message) => check(match(found, pattern).match, message ?? 'no match'),
  notMatch: (found, pattern, message) => check(!match(found, pattern).match, message ?? 'match'),
  fail: (message) => check(false, message ?? 'fail'),
  pass() {},
  comment() {},
  end() {},
};

function testOf(args) {
  const [name, options, run] = args.length === 3 ? args : [args[0], {}, args[1]];
  return { name, run: options.skip ? () => {} : run };
}

/** Rejects when the test is red, or one inside it. */
export async function runTest({ run }) {
  const inner = [];
  const red = [];
  const t = { ...assertions, test: (...args) => void inner.push(runTest(testOf(args))) };
  for (const [name, assertion] of Object.entries(assertions))
    t[name] = (...args) => {
      try {
        assertion(...args);
      } catch (error) {
        // Kept, for the code around may catch it.
        red.push(error);
        throw error;
      }
    };
  await run(t);
  await Promise.all(inner);
  if (red.length > 0) throw red[0];
}

export default { ...assertions, test: (...args) => void collected.push(testOf(args)) };
