/** Stryker's runner of the tests of core (`npm run mutants`): inside its own process, one test at a time. */
import { readdirSync } from 'node:fs';
import { register } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { declareClassPlugin, PluginKind } from '@stryker-mutator/api/plugin';
import {
  DryRunStatus,
  determineHitLimitReached,
  TestStatus,
  toMutantRunResult,
} from '@stryker-mutator/api/test-runner';
import * as tap from './mutants-tap.mjs';

const folder = 'test/core';
/** These measure time, which mutated code takes more of. */
const isLeftOut = (name) => name.endsWith('-time.test.ts');

/** Where mutated code asks which mutant it is, and counts what it runs. */
const stryker = (globalThis.__stryker__ ??= {});
let runs = 0;

register('./mutants-loader.mjs', import.meta.url);

/** The tests of a file, its modules loaded anew. */
async function load(file) {
  tap.startCollecting();
  runs += 1;
  await import(`${pathToFileURL(resolve(file.replace(/ts$/, 'js'))).href}?run=${runs}`);
  return tap.collected.map((test) => ({ ...test, id: `${file}: ${test.name}`, file }));
}

async function run({ id, file, ...test }) {
  const began = performance.now();
  const about = { id, name: id, fileName: resolve(file) };
  try {
    await tap.runTest(test);
    return { ...about, status: TestStatus.Success, timeSpentMs: performance.now() - began };
  } catch (error) {
    const failureMessage = String(error?.message ?? error);
    return { ...about, status: TestStatus.Failed, failureMessage, timeSpentMs: performance.now() - began };
  }
}

class CoreRunner {
  capabilities() {
    return { reloadEnvironment: true };
  }

  async dryRun() {
    const results = [];
    stryker.mutantCoverage = { static: {}, perTest: {} };
    const { perTest } = stryker.mutantCoverage;
    const files = readdirSync(folder).filter((name) => name.endsWith('.test.ts') && !isLeftOut(name));
    for (const file of files.map((name) => join(folder, name))) {
      // What runs while the file loads is run for each of its tests.
      stryker.currentTestId = file;
      const tests = await load(file);
      const loaded = perTest[file] ?? {};
      delete perTest[file];
      for (const test of tests) {
        stryker.currentTestId = test.id;
        results.push(await run(test));
        const ran = (perTest[test.id] ??= {});
        for (const [mutant, times] of Object.entries(loaded)) ran[mutant] = (ran[mutant] ?? 0) + times;
      }
    }
    stryker.currentTestId = undefined;
    return { status: DryRunStatus.Complete, tests: results, mutantCoverage: stryker.mutantCoverage };
  }

  async mutantRun({ activeMutant, testFilter, hitLimit }) {
    stryker.activeMutant = activeMutant.id;
    stryker.hitCount = hitLimit === undefined ? undefined : 0;
    stryker.hitLimit = hitLimit;
    try {
      const tests = await this.#untilRed(new Set(testFilter));
      const reached = determineHitLimitReached(stryker.hitCount, hitLimit);
      return toMutantRunResult(reached ?? { status: DryRunStatus.Complete, tests });
    } finally {
      stryker.activeMutant = undefined;
    }
  }

  async #untilRed(wanted) {
    const results = [];
    for (const file of new Set([...wanted].map((id) => id.slice(0, id.indexOf(': '))))) {
      let tests;
      try {
        tests = await load(file);
      } catch (error) {
        // Code that does not even load is noticed by whatever test comes first.
        const [id] = [...wanted].filter((one) => one.startsWith(`${file}: `));
        tests = [{ id, file, run: () => Promise.reject(error) }];
      }
      for (const test of tests.filter(({ id }) => wanted.has(id))) {
        const result = await run(test);
        results.push(result);
        if (result.status === TestStatus.Failed) return results;
      }
    }
    return results;
  }
}

export const strykerPlugins = [declareClassPlugin(PluginKind.TestRunner, 'core', CoreRunner)];
