/** Breakages of what clients and their libraries can read; the form is that of test/breakages.mjs. */
export const breakages = [
  {
    rule: 'a problem has the members that SDKs read',
    in: 'ietfReply',
    find: '    ...forSdks(code, status, detail),\n',
    replace: '',
    test: 'test/e2e/answers.test.ts',
    alsoBy: [{ test: 'test/proxy/pass-through-failure.test.ts' }, { test: 'test/e2e/framing.test.ts' }],
  },
  {
    rule: 'a replay does not repeat the time of the first answer',
    in: 'notForReplay',
    find: "  'date',\n",
    replace: '',
    test: 'test/e2e/guarded.test.ts',
    alsoBy: [{ test: 'test/proxy/wait.test.ts' }],
  },
  {
    rule: 'no client is asked to wait for an outcome that nothing settles',
    in: 'retryAfterSeconds',
    find: '  answer_unsaved: 1,\n',
    replace: '  answer_unsaved: 1,\n  outcome_unknown: 60,\n',
    test: 'test/e2e/answers.test.ts',
  },
  {
    rule: 'a replay does not repeat the grant of another origin',
    in: 'grantedAgain',
    find: "granted.every((one) => one === '*' || one === origin)",
    replace: "granted.every((one) => one !== '')",
    test: 'test/e2e/cors.test.ts',
    alsoBy: [{ test: 'test/core/cors.test.ts' }],
  },
  {
    rule: 'who waited is not given the grant of the request that ran',
    file: 'src/proxy/complete.ts',
    find: 'headers: decodeStored(memos, stored) ?? [], isRepeated: true }',
    replace: 'headers: decodeStored(memos, stored) ?? [] }',
    test: 'test/e2e/cors.test.ts',
  },
  {
    rule: 'only a page of a listed origin may read a problem',
    in: 'allowedBy',
    find: 'if (origins.includes(origin)) return origin;',
    replace: 'if (origins.length > 0) return origin;',
    test: 'test/e2e/cors.test.ts',
    alsoBy: [{ test: 'test/core/cors.test.ts' }],
  },
];
