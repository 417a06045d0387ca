import t from 'tap';
import { ask, problemOf } from '../helpers/client.ts';
import { testDatabase } from '../helpers/postgres.ts';
import { countRecords } from '../helpers/records.ts';
import { type SidecarProcess, sidecarProcess } from '../helpers/sidecar.ts';
import { until } from '../helpers/until.ts';
import { testUpstream } from '../helpers/upstream.ts';

const rounds = 10;
const keysPerRound = 30;
/** Clients that send one key, all at once and then for as long as it takes. */
const clientsPerKey = 3;
/** Requests that the victim must have upstream when it is killed. */
const victimsAtLeast = 3;

const config = `
lease: 1s
loops: { sweep: 100ms, reap: 1s }
defaults: { inFlight: { wait: 1s } }`;

/** In every other round the upstream answers at once, and the kill meets requests in every phase. */
const isHolding = (round: number) => round % 4 < 2;

type Final = 'unknown' | `ran ${string}`;

t.test(
  'kill -9 of one of two sidecars under load, ten times: no key runs twice, none is left in progress',
  async (t) => {
    let held: (() => void)[] | null = null;
    const upstream = await testUpstream(t, ({ key }, res) => {
      const answer = () => res.writeHead(201).end(`ran ${key}`);
      if (held === null) answer();
      else held.push(answer);
    });
    const { url: databaseUrl } = await testDatabase(t);
    const start = () => sidecarProcess(t, { upstream: upstream.url, databaseUrl, config });
    const sidecars: [SidecarProcess, SidecarProcess] = [await start(), await start()];

    /** As a good client does: the same key, on whichever sidecar answers, until there is an end to it. */
    const persist = async (key: string, first: number): Promise<Final> => {
      for (let turn = first; ; turn += 1) {
        const { dataUrl } = sidecars[turn % 2] as SidecarProcess;
        const answer = await ask(`${dataUrl}/charges`, { key, body: `"${key}"` }).catch(() => null);
        if (answer?.status === 201) return answer.body.toString() as Final;
        if (answer?.status === 409 && problemOf(answer).code === 'outcome_unknown') return 'unknown';
        // Not there, in progress, or without its store or lease: later.
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    };

    const finals = new Map<string, Set<Final>>();
    for (let round = 0; round < rounds; round += 1) {
      const victim = sidecars[round % 2] as SidecarProcess;
      const victimHost = new URL(victim.dataUrl).host;
      held = isHolding(round) ? [] : null;
      const before = upstream.executions.length;
      const clients = Array.from({ length: keysPerRound * clientsPerKey }, async (_, i) => {
        const key = `round-${round}-${i % keysPerRound}`;
        const final = await persist(key, i);
        finals.set(key, (finals.get(key) ?? new Set()).add(final));
      });
      await until(
        'the victim has requests upstream',
        () =>
          upstream.executions.slice(before).filter((one) => one.headers.host === victimHost).length >=
          victimsAtLeast,
      );
      victim.kill('SIGKILL');
      await victim.exited;
      const answers: (() => void)[] = held ?? [];
      held = null;
      for (const answer of answers) answer();
      [sidecars[round % 2]] = await Promise.all([start(), ...clients]);
    }

    await until(
      'none is in progress',
      async () => (await countRecords(databaseUrl, `state = 'in_progress'`)) === 0,
    );
    const keys = [...finals.keys()];
    t.equal(keys.length, rounds * keysPerRound);
    const twice = () => keys.filter((key) => upstream.countOf(key) > 1);
    t.same(twice(), [], 'no key ran twice');

    const ran = upstream.executions.length;
    const again = new Map<string, Final>();
    await Promise.all(keys.map(async (key, i) => again.set(key, await persist(key, i))));
    const unknown = keys.filter((key) => again.get(key) === 'unknown');
    const answered = keys.filter((key) => again.get(key) === `ran ${key}`);
    t.equal(unknown.length + answered.length, keys.length, 'each is answered or unknown');
    t.equal(upstream.executions.length, ran, 'and none runs again, an unknown one least of all');
    t.same(
      answered.filter((key) => upstream.countOf(key) !== 1),
      [],
      'what is answered ran',
    );
    t.same(
      unknown.filter((key) => finals.get(key)?.has(`ran ${key}`)),
      [],
      'what a client saw is replayed',
    );
    t.equal(await countRecords(databaseUrl, `state = 'unknown'`), unknown.length);
    t.equal(await countRecords(databaseUrl, `state = 'completed'`), answered.length);
    for (let round = 0; round < rounds; round += 1) {
      const lost = unknown.filter((key) => key.startsWith(`round-${round}-`)).length;
      t.ok(!isHolding(round) || lost >= victimsAtLeast, `round ${round}: ${lost} lost their sidecar`);
    }
  },
);
