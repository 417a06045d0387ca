import type { Reach } from '../upstream/reach.ts';
import { type Finding, failure, ok, warning } from './check.ts';
import { roughly } from './roughly.ts';

/** Long enough for people to act; who renews by machine renews earlier. */
const renewWithinMs = 14 * 86_400_000;

export function judgeUpstream(origin: string, reach: Reach, now: Date): Finding {
  if (reach.kind === 'failed')
    return failure(`${origin}: ${reach.reason}`, adviceFor(reach.code, origin.startsWith('https:')));
  const { address, tookMs, certificate } = reach;
  const text = `${origin} accepts connections (${address}, ${roughly(tookMs)}); no request was sent`;
  if (certificate === null) return ok(text);
  const { names, validUntil, protocol } = certificate;
  const leftMs = validUntil.getTime() - now.getTime();
  const secured = `${text}; ${protocol}, certificate for ${names}`;
  if (leftMs >= renewWithinMs) return ok(`${secured}, good for ${roughly(leftMs)}`);
  return warning(
    `${secured}, which ends on ${validUntil.toISOString().slice(0, 10)}`,
    'renew the certificate: past that day nothing is forwarded',
  );
}

function adviceFor(code: string, isHttps: boolean): string {
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return 'correct the host in upstream.url, or the name service of this machine';
  if (code === 'ECONNREFUSED') return 'start the service there, or correct upstream.url';
  if (code === 'UND_ERR_CONNECT_TIMEOUT')
    return 'see that upstream.url is right, and that no firewall or network policy lies between';
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return 'write the name in upstream.url that the certificate is for';
  if (code === 'CERT_HAS_EXPIRED') return "renew the upstream's certificate";
  return isHttps
    ? 'give the certificate authority to Node.js with NODE_EXTRA_CA_CERTS=FILE, or see whether the service speaks TLS'
    : 'see what the service says in its own log';
}
