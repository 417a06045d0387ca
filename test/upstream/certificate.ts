import { execFileSync } from 'node:child_process';

/** Key and self-signed certificate in one PEM, made for this run. `names` as in a certificate: `DNS:shop.example,IP:127.0.0.1`. */
export function selfSigned(names: string, days = 2): string {
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const subject = ['-subj', '/CN=oncegate test', '-addext', `subjectAltName=${names}`];
  const args = ['req', '-x509', ...curve, '-days', String(days), ...subject, '-keyout', '-', '-out', '-'];
  return execFileSync('openssl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}
