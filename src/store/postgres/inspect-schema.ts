import { OncegateError } from '../../errors.ts';
import { type InspectSession, withAnswerLimit } from './inspect-session.ts';
import { type MigrationStatus, migrateStatus } from './migrate.ts';
import { readMissingPrivileges, readPrivileges } from './sql/doctor.ts';
import { readIdentity } from './sql/schema.ts';

export type SchemaFacts =
  | ({ readonly kind: 'read' } & MigrationStatus)
  | { readonly kind: 'refused'; readonly reason: string };

export interface PrivilegeFacts {
  /** Both quoted as SQL wants them. */
  readonly role: string;
  readonly database: string;
  readonly schemaExists: boolean;
  readonly mayCreateSchema: boolean;
  /** `object` as GRANT names it. */
  readonly missing: readonly { readonly object: string; readonly privilege: string }[];
}

export async function inspectSchema(url: string): Promise<SchemaFacts> {
  try {
    return { kind: 'read', ...(await migrateStatus(withAnswerLimit(url))) };
  } catch (error) {
    if (error instanceof OncegateError && error.code === 'store_refused')
      return { kind: 'refused', reason: error.message };
    throw error;
  }
}

/** null: no instance has started on this store yet. */
export async function inspectIdentity(session: InspectSession): Promise<string | null> {
  const [row] = await session.look<{ settings: string }>(readIdentity);
  return row?.settings ?? null;
}

export async function inspectPrivileges(session: InspectSession): Promise<PrivilegeFacts> {
  const [role] = await session.look<Omit<PrivilegeFacts, 'missing'>>(readPrivileges);
  const missing = await session.look<PrivilegeFacts['missing'][number]>(readMissingPrivileges);
  return { ...(role as Omit<PrivilegeFacts, 'missing'>), missing };
}
