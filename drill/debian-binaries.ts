import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** The embedded binaries have no pg_basebackup; a standby is made with Debian's. */
const debianDir = '/usr/lib/postgresql';

export const howToGetIt = `PostgreSQL with pg_basebackup under ${debianDir}: apt-get update && apt-get install postgresql-15`;

/** null: not installed. */
export function binDir(): string | null {
  if (!existsSync(debianDir)) return null;
  const versions = readdirSync(debianDir).sort((a, b) => Number(b) - Number(a));
  return (
    versions
      .map((version) => join(debianDir, version, 'bin'))
      .find((dir) => existsSync(join(dir, 'pg_basebackup'))) ?? null
  );
}

/** PostgreSQL refuses to be root. */
export function serverUser(): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const passwd = readFileSync('/etc/passwd', 'utf8');
  const line = /^postgres:[^:]*:(\d+):(\d+):/m.exec(passwd) ?? /^nobody:[^:]*:(\d+):(\d+):/m.exec(passwd);
  return { uid: Number(line?.[1] ?? 65534), gid: Number(line?.[2] ?? 65534) };
}
