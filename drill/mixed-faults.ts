import { setTimeout as delay } from 'node:timers/promises';
import type { Teardown } from '../test/helpers/postgres.ts';
import { BackendKiller } from './backend-killer.ts';
import { leaseMs, type MixedScene, type Replica } from './mixed-scene.ts';
import type { Random } from './random.ts';

/** What a fault has for itself while it lasts: two at once never meet on the same thing. */
interface Site {
  readonly t: Teardown;
  readonly scene: MixedScene;
  readonly replica: Replica;
  readonly random: Random;
}

export interface Fault {
  readonly name: string;
  readonly on: 'replica' | 'store';
  /** Ends healed. */
  readonly run: (site: Site) => Promise<void>;
}

async function startAgain({ scene, replica }: Site): Promise<void> {
  await replica.exited();
  await replica.startAgain();
  scene.update();
}

/** Each lasts a random time; the delays are the fault itself. */
export const faults: readonly Fault[] = [
  {
    name: 'replica killed',
    on: 'replica',
    run: async (site) => {
      site.replica.kill('SIGKILL');
      await delay(site.random.between(0, 1_500));
      await startAgain(site);
    },
  },
  {
    name: 'replica suspended past its lease',
    on: 'replica',
    run: async ({ replica, random }) => {
      replica.kill('SIGSTOP');
      await delay(leaseMs + random.between(200, 2_000));
      replica.kill('SIGCONT');
    },
  },
  {
    name: 'replica drained',
    on: 'replica',
    run: async (site) => {
      site.replica.kill('SIGTERM');
      await startAgain(site);
    },
  },
  {
    name: 'cut from PostgreSQL',
    on: 'replica',
    run: async ({ replica, random }) => {
      replica.store.refuse(true);
      replica.store.cutAll();
      await delay(random.pick([0, 0, random.between(0, 1_500)]));
      replica.store.refuse(false);
    },
  },
  {
    name: 'black hole before PostgreSQL',
    on: 'replica',
    run: async ({ replica: { store }, random }) => {
      const direction = random.pick([undefined, 'toClient', 'toServer'] as const);
      const isCut = random.chance(0.5);
      store.pause(direction);
      // Some outlast the lease.
      await delay(random.between(300, 1.5 * leaseMs));
      if (isCut) store.cutAll();
      store.resume(direction);
    },
  },
  {
    name: 'cut from the upstream',
    on: 'replica',
    run: async ({ replica, random }) => {
      replica.upstream.refuse(true);
      replica.upstream.cutAll();
      await delay(random.pick([0, random.between(0, 800)]));
      replica.upstream.refuse(false);
    },
  },
  {
    name: 'server processes ended',
    on: 'store',
    run: async ({ t, scene, random }) => {
      const killer = await BackendKiller.start(t, scene.server.url, random);
      await delay(1_000);
      await killer.stop();
    },
  },
  {
    name: 'PostgreSQL stopped at once',
    on: 'store',
    run: async ({ scene, random }) => {
      await scene.server.stop('immediate');
      await delay(random.between(0, 1_500));
      await scene.server.start();
    },
  },
];
