import { OncegateError } from '../../errors.ts';
import { startEmbedded, urlOf } from './embedded.ts';
import { readCluster } from './embedded-cluster.ts';
import { findHome, holdsCluster } from './embedded-home.ts';
import { findLeftover, readPidFile } from './embedded-postmaster.ts';
import { migrateUp } from './migrate.ts';

export interface EmbeddedVisit {
  readonly url: string;
  /** Leaves the server as it was found: running, or stopped. */
  readonly leave: () => Promise<void>;
}

/**
 * Reaches an embedded store beside the process that serves from it, or starts its server for the length of the visit. It never makes a
 * store: a wrong directory would look like an empty one.
 */
export async function visitEmbedded(dataDir: string, log: (line: string) => void): Promise<EmbeddedVisit> {
  if (!holdsCluster(dataDir))
    throw new OncegateError(
      'store_missing',
      `there is no embedded store in ${dataDir}: the first start of demo or serve --embedded makes it; name another directory with --data-dir`,
    );
  const running = runningEmbedded(dataDir, log);
  if (running !== null) return { url: running, leave: async () => {} };
  const server = await startEmbedded({ dataDir, log });
  try {
    // As a start of serve would: nobody runs here who needs the older schema.
    await migrateUp(server.url);
    return { url: server.url, leave: () => server.stop() };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** The URL of the server that runs on this directory now, whoever owns it; null: none does. */
export function runningEmbedded(dataDir: string, log: (line: string) => void): string | null {
  if (!holdsCluster(dataDir)) return null;
  const cluster = readCluster(findHome(dataDir, log));
  const found = findLeftover(cluster);
  return found !== undefined && readPidFile(cluster)?.ready ? urlOf(cluster, found.port, 'oncegate') : null;
}
