import { asError, OncegateError } from '../errors.ts';
import { placeText, type StorePlace } from '../store/postgres/connect-fault.ts';
import type { OpenedSession } from '../store/postgres/inspect-session.ts';
import { type Finding, failure, ok, skipped, warning } from './check.ts';

export function judgeReach(opened: OpenedSession): Finding {
  if (opened.kind === 'opened') return judgeTls(opened.session.place, opened.session.tls);
  const { place, fault } = opened;
  return failure(
    `${placeText(place)} ${fault.verb}: ${fault.reason}`,
    fault.advice,
    fault.kind === 'away' ? 'store_unreachable' : 'store_refused',
  );
}

/** A socket file of this machine has a path for a host. */
const thisMachine = /^(localhost|127\..*|::1|\/.*)$/;

export function judgeTls(place: StorePlace, tls: string | null): Finding {
  const text = `${placeText(place)}, ${tls ?? 'without TLS'}`;
  if (tls !== null || thisMachine.test(place.host)) return ok(text);
  return warning(
    `${text}: keys and stored answers travel in clear`,
    `add ?sslmode=verify-full to the store's URL (DATABASE_URL, store.url or --database-url)`,
  );
}

/** A sidecar that runs has its own data directory to itself: no fault, but nothing for us to look at. */
export function judgeEmbedded(error: unknown): Finding {
  const [text = '', ...rest] = asError(error).message.split('\n');
  const [owner, advice = ''] = text.split(': ', 2);
  if (text.includes('is in use by process'))
    return skipped(`embedded: ${owner}, which has it to itself; stop that one to look at the store`);
  const code = error instanceof OncegateError ? error.code : 'embedded_failed';
  return failure(`embedded: ${text}`, rest.join('\n') || advice, code);
}
