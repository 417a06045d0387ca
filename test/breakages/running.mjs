/** Breakages of rules in this area; the form is that of test/breakages.mjs. */
export const breakages = [
  {
    rule: 'one pass that fails keeps no record from being swept',
    in: 'Sweeper.runOnce',
    find: 'await store.sweep(sweepLimit, () => lease.isSteady);',
    replace:
      'await store.sweep(sweepLimit, () => lease.isSteady && this.#deps.nowMs() >= this.quietUntilMs).catch((error: Error) => {\n          this.quietUntilMs = this.#deps.nowMs() + 60_000;\n          throw error;\n        });',
    more: [
      {
        in: 'Sweeper.#deps',
        find: '  readonly #deps: SweeperDeps;\n',
        replace: '  readonly #deps: SweeperDeps;\n  quietUntilMs = 0;\n',
      },
    ],
    test: 'test/loops/sweeper.test.ts',
  },
  {
    rule: 'what is past its deadline never waits for the quiet time',
    in: 'PostgresStore.sweep',
    find: "if (reason === 'deadline_passed' && !isOverdue) return [];",
    replace: 'if (!doLeasesCount) return [];',
    test: 'test/loops/sweeper.test.ts',
  },
  {
    rule: 'whether leases count is asked after they were looked at',
    in: 'PostgresStore.sweep',
    find: 'const rows = await this.#pass(findSweepable, [limit]);',
    replace:
      'const didLeasesCount = leasesCount();\n    const rows = await this.#pass(findSweepable, [limit]);',
    more: [
      {
        in: 'PostgresStore.sweep',
        find: 'const doLeasesCount = leasesCount();',
        replace: 'const doLeasesCount = didLeasesCount;',
      },
    ],
    test: 'test/loops/sweeper.test.ts',
  },
  {
    rule: 'no lease counts for a lease after an outage in which nobody could renew',
    in: 'Lease.#acknowledged',
    find: 'if (this.#elapsedMs() > this.#gapMs) this.#steadySinceMs = this.#clock.monotonicMs();',
    replace: '',
    test: 'test/loops/sweeper.test.ts',
  },
  {
    rule: 'no lease counts while our own cannot be renewed',
    in: 'Lease.isSteady',
    find: 'this.#elapsedMs() <= this.#gapMs &&',
    replace: '',
    test: 'test/loops/sweeper.test.ts',
  },
  {
    rule: 'serve without a store never makes one of its own',
    in: 'requireStore',
    find: "  if (store.kind !== 'none') return store;",
    replace:
      "  if (store.kind !== 'none') return store;\n  if (store.kind === 'none') return { kind: 'embedded', dataDir: '.oncegate', migrate: 'auto', poolSize: 10, durability: 'strict' };",
    test: 'test/cli/oncegate.test.ts',
  },
  {
    rule: 'the config reference is what the schema says',
    in: 'defaultsSchema',
    find: "retention: fields.retention.prefault('24h')",
    replace: "retention: fields.retention.prefault('25h')",
    test: 'test/config/json-schema.test.ts',
  },
  {
    rule: 'a start is patient to its last look at the store',
    file: 'src/main.ts',
    find: 'await whenReachable(watching, instance.openLease);',
    replace: 'await instance.openLease();',
    test: 'test/e2e/start.test.ts',
  },
  {
    rule: 'an asynchronous standby is warned of at the start',
    in: 'start',
    find: "if (standbys.level === 'warning')",
    replace: "if (standbys.level === 'warning' && config.warnings.length < 0)",
    test: 'test/e2e/start.test.ts',
  },
  {
    rule: 'the lease is renewed while it drains',
    in: 'start',
    find: '      draining = true;',
    replace: '      draining = true;\n      await instance.stopLoops();',
    test: 'test/e2e/drain.test.ts',
  },
  {
    rule: 'the log line spelled by hand leaves out what there is not',
    in: 'requestLine',
    find: 'if (outcome !== null) line +=',
    replace: 'line +=',
    test: 'test/telemetry/logger.test.ts',
  },
  {
    rule: 'a visit makes no embedded store',
    in: 'visitEmbedded',
    find: '  if (!holdsCluster(dataDir))\n    throw',
    replace: "  if (dataDir === '')\n    throw",
    test: 'test/cli/keys-embedded.test.ts',
  },
  {
    rule: 'a short id that nobody is asked about changes nothing',
    file: 'src/operator/lookup.ts',
    find: 'purpose.isChecked ? fewLetters : idLetters',
    replace: 'purpose.isChecked ? fewLetters : fewLetters',
    test: 'test/cli/keys.test.ts',
  },
  {
    rule: 'every port that is taken is told',
    in: 'assertFree',
    find: '      faults.push(faultOf(error, addresses[name], settings[name]));',
    replace: '      faults.push(faultOf(error, addresses[name], settings[name]));\n      break;',
    test: 'test/e2e/start.test.ts',
  },
  {
    rule: 'a start warns of who may get whose answer',
    in: 'start',
    find: 'for (const warning of exposureWarnings(config))',
    replace: 'for (const warning of exposureWarnings(config).slice(2))',
    test: 'test/e2e/start.test.ts',
  },
  {
    rule: 'what a killed instance left is told as its lease, though its deadline has passed too',
    in: 'PostgresStore.sweep',
    find: 'const reason = doLeasesCount && isLeaseOver ?',
    replace: 'const reason = doLeasesCount && isLeaseOver && !isOverdue ?',
    test: 'test/store/postgres.test.ts',
  },
  {
    rule: 'an sslmode that the driver does not know is a fault of the config',
    in: 'storeQueryFault',
    find: "if (name === 'sslmode' && !modes.includes(value))",
    replace: "if (name === 'sslmode' && modes.length === 0)",
    test: 'test/config/store-url.test.ts',
  },
];
