import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../test/helpers/until.ts';
import { type LateScene, type Row, wordOf } from './late-scene.ts';

export interface Case {
  readonly name: string;
  readonly expected: Omit<Row, 'evidence'> & { readonly evidence: RegExp };
  readonly play: (scene: LateScene, key: string) => Promise<Row>;
}

const answered = { client: '201 executed', record: 'completed 201', retry: '201 replayed', executions: '1' };
const doubtful = { retry: '409 outcome_unknown', executions: '1' };

/** Milliseconds between two bytes. */
const dripMs = 100;

export const cases: readonly Case[] = [
  {
    name: 'answers',
    expected: { ...answered, evidence: /^$/ },
    play: async (scene, key) => {
      const client = scene.send(key);
      (await scene.upstream.take(key)).answer();
      return await scene.close(key, wordOf(await client), '');
    },
  },
  {
    name: 'answers after its client has left',
    expected: { ...answered, client: 'has left', evidence: /^$/ },
    play: async (scene, key) => {
      const leaving = new AbortController();
      const client = scene.send(key, '/charges', leaving.signal).then(wordOf, () => 'has left');
      const arrived = await scene.upstream.take(key);
      leaving.abort();
      const told = await client;
      arrived.answer();
      await until('it is kept', async () => (await scene.state(key)) === 'completed');
      return await scene.close(key, told, '');
    },
  },
  {
    name: 'hangs past the timeout',
    expected: { ...doubtful, client: '504 upstream_timeout', record: 'unknown', evidence: /gone/ },
    play: async (scene, key) => {
      const client = scene.send(key, '/soon');
      const arrived = await scene.upstream.take(key);
      const told = wordOf(await client);
      return await scene.close(key, told, alone(arrived.isAlone), '/soon');
    },
  },
  {
    name: 'answers after the timeout',
    expected: { ...doubtful, client: '504 upstream_timeout', record: 'unknown', evidence: /gone/ },
    play: async (scene, key) => {
      const client = scene.send(key, '/soon');
      const arrived = await scene.upstream.take(key);
      const told = wordOf(await client);
      const evidence = alone(arrived.isAlone);
      arrived.answer();
      return await scene.close(key, told, evidence, '/soon');
    },
  },
  {
    name: 'drips past the timeout',
    expected: { ...doubtful, client: '504 upstream_timeout', record: 'unknown 201', evidence: /bytes/ },
    play: async (scene, key) => {
      const client = scene.send(key, '/soon');
      const arrived = await scene.upstream.take(key);
      arrived.sendHead();
      let bytes = 0;
      while (!arrived.isAlone && arrived.drip(bytes++)) await delay(dripMs);
      return await scene.close(
        key,
        wordOf(await client),
        `${bytes} of ${arrived.body.length} bytes`,
        '/soon',
      );
    },
  },
  {
    name: 'drips, and ends in time',
    expected: { ...answered, evidence: /bytes/ },
    play: async (scene, key) => {
      const client = scene.send(key);
      const arrived = await scene.upstream.take(key);
      arrived.sendHead();
      let bytes = 0;
      while (arrived.drip(bytes++)) await delay(dripMs / 5);
      arrived.end();
      return await scene.close(key, wordOf(await client), `${bytes} of ${arrived.body.length} bytes`);
    },
  },
  {
    name: 'cuts its answer short',
    expected: { ...doubtful, client: '502 upstream_failed', record: 'unknown 201', evidence: /^$/ },
    play: async (scene, key) => {
      const client = scene.send(key);
      const arrived = await scene.upstream.take(key);
      arrived.sendHead();
      arrived.drip(0);
      await delay(dripMs);
      arrived.cut();
      return await scene.close(key, wordOf(await client), '');
    },
  },
  {
    name: 'answers after the sweep',
    expected: { ...answered, evidence: /^was unknown$/ },
    play: async (scene, key) => {
      const client = scene.send(key);
      const arrived = await scene.upstream.take(key);
      await scene.sleep(key);
      const before = await scene.state(key);
      arrived.answer();
      scene.wake();
      return await scene.close(key, wordOf(await client), `was ${before}`);
    },
  },
  {
    name: 'answers after a release, before any retry',
    expected: { ...answered, evidence: /^was failed_retryable$/ },
    play: async (scene, key) => {
      const client = scene.send(key);
      const arrived = await scene.upstream.take(key);
      await scene.sleep(key);
      await scene.release(key);
      const before = await scene.state(key);
      arrived.answer();
      scene.wake();
      return await scene.close(key, wordOf(await client), `was ${before}`);
    },
  },
  {
    name: 'answers after a release, while a retry runs',
    expected: {
      ...answered,
      client: '409 in_progress',
      executions: '2',
      evidence: /^late answer refused, 1 kept/,
    },
    play: async (scene, key) => {
      const client = scene.send(key);
      const arrived = await scene.upstream.take(key);
      await scene.sleep(key);
      await scene.release(key);
      const retry = scene.sendToOther(key);
      const second = await scene.upstream.take(key);
      arrived.answer();
      scene.wake();
      const told = wordOf(await client);
      second.answer();
      return await scene.close(key, told, await evidenceOf(scene, key, wordOf(await retry)));
    },
  },
  {
    name: 'answers after a release, after a retry ran',
    expected: {
      ...answered,
      client: '201 replayed',
      executions: '2',
      evidence: /^late answer refused, 1 kept/,
    },
    play: async (scene, key) => {
      const client = scene.send(key);
      const arrived = await scene.upstream.take(key);
      await scene.sleep(key);
      await scene.release(key);
      const retry = scene.sendToOther(key);
      (await scene.upstream.take(key)).answer();
      const ran = wordOf(await retry);
      arrived.answer();
      scene.wake();
      const told = wordOf(await client);
      return await scene.close(key, told, await evidenceOf(scene, key, ran));
    },
  },
];

const alone = (isAlone: boolean): string => (isAlone ? 'who asked had gone' : 'who asked still waits');

async function evidenceOf(scene: LateScene, key: string, retry: string): Promise<string> {
  return `${await scene.refusalOf(key)}; the retry that ran got ${retry}`;
}
