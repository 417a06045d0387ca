/** Breakages of rules in this area; the form is that of test/breakages.mjs. */
export const breakages = [
  {
    rule: 'a person changes only the attempt that was seen',
    file: 'src/store/postgres/sql/operator.ts',
    find: '    AND record.attempt = $3::uuid\n    AND record.epoch = $4::bigint\n',
    replace: '',
    test: 'test/store/operator.test.ts',
  },
  {
    rule: 'nobody resolves what is in progress',
    file: 'src/store/postgres/sql/operator.ts',
    find: "    AND record.state IN (${fromStates(to, 'operator')})\n    AND record.state IN (${from})\n",
    replace: '',
    test: 'test/store/operator.test.ts',
  },
  {
    rule: 'a release is no purge without its block',
    file: 'src/store/postgres/sql/operator.ts',
    find: '    AND record.state IN (${from})\n',
    replace: '',
    test: 'test/store/operator.test.ts',
  },
  {
    rule: 'a purge blocks its key',
    file: 'src/store/postgres/sql/operator.ts',
    find: "    blocked_until = clock_timestamp() + interval '${purgeBlockSeconds} seconds',\n",
    replace: '',
    test: 'test/e2e/operator.test.ts',
  },
  {
    rule: 'a late completion does not bring a purged answer back',
    file: 'src/store/postgres/sql/operator.ts',
    find: '`    attempt = $6::uuid,\n    status = NULL,',
    replace: '`    status = NULL,',
    test: 'test/store/operator.test.ts',
  },
  {
    rule: 'a change and its audit are one',
    file: 'src/store/postgres/operator.ts',
    find: '        const rows = await this.#pool.query(what, values, timeoutMs);',
    replace:
      "        const alone = { ...what, name: `${what.name}x`, text: what.text.replace(/^WITH changed AS \\(\\n/, '').replace(/\\n\\)\\nINSERT[^]*/, '').replace('RETURNING', 'AND $6::uuid IS NOT NULL AND $7::text IS NOT NULL AND $8::text IS NOT NULL RETURNING') };\n        const rows = await this.#pool.query(alone, values, timeoutMs);",
    test: 'test/store/operator.test.ts',
  },
  {
    rule: 'a decision whose answer was lost is read back, not guessed',
    file: 'src/store/postgres/operator.ts',
    find: "if (lines.length === 0) return { kind: 'refused', record };",
    replace: "if (lines.length >= 0) return { kind: 'refused', record };",
    test: 'test/store/unconfirmed-operator.test.ts',
  },
  {
    rule: 'a release by a person frees the key for the same request only',
    file: 'src/store/postgres/sql/operator.ts',
    find: ',\n    status = NULL`,\n  from: waiting,',
    replace: '`,\n  from: waiting,',
    test: 'test/e2e/operator.test.ts',
  },
  {
    rule: 'a key that may be elsewhere too changes nothing',
    file: 'src/operator/lookup.ts',
    find: '  if (isPlaced) return',
    replace: "  if (isPlaced && key === '') return",
    test: 'test/operator/lookup.test.ts',
  },
  {
    rule: "a key is not looked for where other settings than the sidecars' place it",
    file: 'src/operator/find.ts',
    find: 'inStore !== null && inStore !== settings.identity',
    replace: "inStore === ''",
    test: 'test/operator/find.test.ts',
  },
];
