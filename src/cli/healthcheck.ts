import type { Address } from '../config/address.ts';
import { loadConfig } from '../config/load.ts';
import { asError } from '../errors.ts';
import { type Args, settingsOf } from './args.ts';
import type { Command } from './commands.ts';
import { configFile } from './config-file.ts';
import type { Io } from './run.ts';

/** Milliseconds; shorter than the probes of Docker and Kubernetes usually wait, so that ours is the message. */
const answerWithinMs = 3_000;

/** Asks the sidecar of this machine, found by the same settings as `serve`. For containers without a shell or curl. */
export async function healthcheckCommand(command: Command, args: Args, io: Io): Promise<number> {
  const config = loadConfig({ ...configFile(args, io), flags: settingsOf(command, args), env: io.env });
  const url = `http://${reachable(config.listen.ops)}/${args.flags.has('ready') ? 'readyz' : 'livez'}`;
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(answerWithinMs), redirect: 'error' });
    const text = (await answer.text()).trim();
    if (answer.status === 200) io.stdout.write(`${text}\n`);
    else io.stderr.write(`oncegate: ${url} answered ${answer.status}: ${text.slice(0, 200)}\n`);
    return answer.status === 200 ? 0 : 1;
  } catch (thrown) {
    const { message, cause } = asError(thrown);
    const why = cause instanceof Error ? cause.message || (cause as { code?: string }).code : message;
    io.stderr.write(
      `oncegate: nothing healthy at ${url}: ${why}. Is oncegate running, and is listen.ops the same?\n`,
    );
    return 1;
  }
}

/** An address to connect to: what listens on all of them is asked on loopback. */
function reachable({ host, port }: Address): string {
  const target = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '::1' : host;
  return target.includes(':') ? `[${target}]:${port}` : `${target}:${port}`;
}
