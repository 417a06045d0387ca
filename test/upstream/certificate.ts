import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Key and self-signed certificate in one PEM, made for this run. `names` as in a certificate: `DNS:shop.example,IP:127.0.0.1`. */
export function selfSigned(names: string, days = 2): string {
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const subject = ['-subj', '/CN=oncegate test', '-addext', `subjectAltName=${names}`];
  const args = ['req', '-x509', ...curve, '-days', String(days), ...subject, '-keyout', '-', '-out', '-'];
  return execFileSync('openssl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}

/** The same, and past its last day since yesterday. `openssl req` itself refuses to make one. */
export function expired(names: string): string {
  const pem = selfSigned(names);
  const dir = mkdtempSync(join(tmpdir(), 'oncegate-cert-'));
  try {
    const file = join(dir, 'valid.pem');
    writeFileSync(file, pem, { mode: 0o600 });
    const args = ['x509', '-in', file, '-signkey', file, '-days', '-1'];
    const late = execFileSync('openssl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return pem.slice(0, pem.indexOf('-----BEGIN CERTIFICATE-----')) + late;
  } finally {
    rmSync(dir, { recursive: true });
  }
}
