import type pg from 'pg';
import { OncegateError } from '../../errors.ts';
import {
  liveInstances,
  lockInstances,
  readIdentity,
  replaceIdentity,
  setIdentityOnce,
} from './sql/schema.ts';

/** The settings that make a key unique. The first instance on a store sets them, all others compare. */
export async function checkIdentity(client: pg.Client, identity: string): Promise<void> {
  await client.query(setIdentityOnce, [identity]);
  const kept = await keptIdentity(client);
  if (kept === identity) return;
  throw new OncegateError(
    'identity_changed',
    'the settings that make a key unique differ from those this store was used with.\n' +
      `  the store has  ${kept}\n  this config    ${identity}\n` +
      'With other settings the same retry would be a new key and could run again. Restore the old settings; or, once ' +
      'no client retries a key from before, stop every instance and run `oncegate migrate up --accept-identity`.',
  );
}

/** The store was ours when this process looked at it, and somebody has accepted other settings since. */
export function identityAccepted(): OncegateError {
  return new OncegateError(
    'identity_changed',
    'the settings that make a key unique were changed on this store by `oncegate migrate up --accept-identity`; ' +
      'this instance still has the old ones and takes no lease. Start it with the new settings.',
  );
}

/** In the caller's transaction, which must see what is committed meanwhile. Rejects with `instances_live` and changes nothing. */
export async function acceptIdentity(client: pg.Client, identity: string): Promise<void> {
  // From here to the commit no lease is opened; one that was being opened is there by now.
  await client.query(lockInstances);
  const kept = await keptIdentity(client);
  if (kept === identity) return;
  if (kept !== undefined) await refuseBesideLiveLeases(client);
  await client.query(replaceIdentity, [identity]);
}

/** Instances that are named one by one. */
const maxNamed = 10;

async function refuseBesideLiveLeases(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ id: string; seconds: number }>(liveInstances);
  if (rows.length === 0) return;
  const named = rows.slice(0, maxNamed).map(({ id, seconds }) => `  ${id}, for another ${seconds} s\n`);
  const rest = rows.length > maxNamed ? `  and ${rows.length - maxNamed} more\n` : '';
  const count = rows.length === 1 ? '1 instance has' : `${rows.length} instances have`;
  throw new OncegateError(
    'instances_live',
    `${count} a live lease on this store and may be running requests with its old settings:\n${named.join('')}${rest}` +
      'With other settings beside them the same retry would be a new key and could run twice. Nothing was changed. Stop every ' +
      'instance and run the command again; an instance that was killed keeps its lease for the time named above.',
  );
}

async function keptIdentity(client: pg.Client): Promise<string | undefined> {
  return (await client.query<{ settings: string }>(readIdentity)).rows[0]?.settings;
}
