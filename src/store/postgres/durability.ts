/** The server's settings on which it depends whether an acknowledged commit survives. */
export interface CommitSettings {
  readonly synchronousCommit: string;
  readonly fsync: string;
  readonly synchronousStandbyNames: string;
}

/** With these the server acknowledges a commit only once the synchronous standby has it on disk. */
const waitsForStandby: ReadonlySet<string> = new Set(['on', 'remote_apply']);

/**
 * What may lose an acknowledged commit; null: nothing that the settings show. Where no synchronous standby is named, every value
 * of `synchronous_commit` but `off` means the same: on the disk of this server. Where one is named, `local` does not wait for
 * it, and `remote_write` waits until it has the commit in memory only.
 */
export function mayLoseBy(settings: CommitSettings): 'crash' | 'failover' | null {
  const { synchronousCommit, fsync, synchronousStandbyNames } = settings;
  if (synchronousCommit === 'off' || fsync === 'off') return 'crash';
  return synchronousStandbyNames !== '' && !waitsForStandby.has(synchronousCommit) ? 'failover' : null;
}

/** Why `strict` refuses such a server, and what to set. */
export function refusalOf(by: 'crash' | 'failover', settings: CommitSettings): string {
  const { synchronousCommit, fsync, synchronousStandbyNames } = settings;
  const accept = 'or accept the loss with store.durability: relaxed';
  return by === 'crash'
    ? `the server may lose acknowledged commits (synchronous_commit ${synchronousCommit}, fsync ${fsync}); ` +
        `turn them on, ${accept}`
    : `a failover may lose acknowledged commits (synchronous_commit ${synchronousCommit}, ` +
        `synchronous_standby_names '${synchronousStandbyNames}'); ` +
        `set synchronous_commit to on or remote_apply for this role, database or server, ${accept}`;
}
