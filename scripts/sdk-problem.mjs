/** What is expected of a problem: an error that shows our words, and of its operation no more runs than there may be. */
import { randomUUID } from 'node:crypto';

const { problemCodes, problemReply } = await import(new URL('../src/core/problem.ts', import.meta.url).href);

export { problemCodes };

/** The whole text of a problem; `detail` where it is not the table's, `isWhole` where nothing of the table's follows it. */
export function textOf(code, { detail, isWhole = false } = {}) {
  const facts = { dialect: 'ietf', requestId: 'r', isWhole, ...(detail && { detail }) };
  return JSON.parse(problemReply(code, facts).body).detail;
}

/** Whoever retries all the same, whatever we say, hears this of a request whose outcome is unknown. */
const unknown = textOf('outcome_unknown');

/** null: an error that shows one of the texts. */
export function faultOf({ threw, said, body }, { showsBody }, texts) {
  if (!threw) return 'taken for a success';
  const shown = showsBody ? `${body}` : said;
  return texts.some((text) => shown.includes(text))
    ? null
    : `shows ${JSON.stringify(showsBody ? { said, body } : said).slice(0, 160)}`;
}

/**
 * Once as the SDK is without retries, once with one of its own. `runs`: how often the upstream runs it all in all: 0 for what is refused
 * before it is forwarded. `texts` are those of the end, [] a success. `mark`: what the upstream is to do, as a beginning of the key.
 */
export function tried(name, { runs, texts, call, mark = '', ...more }) {
  return {
    name,
    ...more,
    async run(bench, client, sdk) {
      for (const retries of more.retries ?? [0, 1]) {
        const key = `${mark}${randomUUID()}`;
        const ask = (other) => client({ url: bench.url, key, note: key, retries, ...other });
        const end = await call({ ask, bench, key });
        const mayAskAgain = retries > 0 && !sdk.obeys && /^upstream_(failed|timeout)/.test(name);
        const allowed = mayAskAgain ? [...texts, unknown] : texts;
        const ran = bench.ran(key);
        if (ran !== runs) return `retries ${retries}: ran ${ran} times`;
        const fault = texts.length > 0 ? faultOf(end, sdk, allowed) : end.threw ? end.said : null;
        if (fault !== null) return `retries ${retries}: ${fault}`;
      }
      return null;
    },
  };
}

/** By code, with the table's text. */
export const problem = (code, runs, call, more) =>
  tried(more?.name ?? code, { runs, call, texts: [textOf(code, more)], ...more });
