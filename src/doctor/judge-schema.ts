import type { PrivilegeFacts, SchemaFacts } from '../store/postgres/inspect-schema.ts';
import { blocking, type Finding, failure, ok, skipped, warning } from './check.ts';

export function judgeSchema(facts: SchemaFacts, migrate: 'check' | 'auto'): Finding {
  if (facts.kind === 'refused')
    return failure(facts.reason, 'give this role the privileges named below', 'store_refused');
  const { version, wanted, pending } = facts;
  if (version > wanted)
    return failure(
      `version ${version}, newer than this oncegate knows (${wanted})`,
      'run the newer oncegate that migrated it',
      'schema_mismatch',
    );
  if (pending.length === 0) return ok(`version ${version}, as wanted`);
  const text = `version ${version}, this oncegate wants ${wanted}; missing: ${pending.join(', ')}`;
  return migrate === 'auto'
    ? blocking(text, 'the next start of serve migrates it; then run oncegate doctor again')
    : failure(text, 'run: oncegate migrate up', 'schema_mismatch');
}

export function judgeIdentity(stored: string | null, ours: string): Finding {
  if (stored === null) return ok(`none stored yet, the first start stores ${ours}`);
  if (stored === ours) return ok(ours);
  return failure(
    'the settings that make a key unique differ from those this store was used with',
    `the store has  ${stored}\nthis config    ${ours}\n` +
      'restore the old settings; or, once no client retries a key from before, stop every instance and run:\n' +
      'oncegate migrate up --accept-identity',
    'identity_changed',
  );
}

export function judgePrivileges(facts: PrivilegeFacts): Finding {
  const { role, database, schemaExists, mayCreateSchema, missing } = facts;
  if (!schemaExists) {
    if (mayCreateSchema) return skipped(`no schema yet, which role ${role} may create`);
    return warning(
      `no schema yet, and role ${role} may not create it`,
      `run oncegate migrate up as a role that may, or: GRANT CREATE ON DATABASE ${database} TO ${role};`,
    );
  }
  if (missing.length === 0) return ok(`role ${role} has what it needs`);
  const objects = [...new Set(missing.map(({ object }) => object))];
  const grants = objects.map((object) => {
    const privileges = missing.filter((one) => one.object === object).map(({ privilege }) => privilege);
    return `GRANT ${privileges.join(', ')} ON ${object} TO ${role};`;
  });
  return failure(
    `role ${role} lacks privileges`,
    `as the owner of the schema run:\n${grants.join('\n')}`,
    'store_refused',
  );
}
