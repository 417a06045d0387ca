import { UsageError } from './options.ts';
import { say } from './say.ts';
import { Stage } from './stage.ts';

/** A command that starts processes: however it ends, they are stopped. Sets the exit code that `work` gives. */
export async function onStage(
  usage: string,
  work: (args: readonly string[], stage: Stage) => Promise<number | 'help'>,
): Promise<void> {
  const stage = new Stage();
  let stopped = false;
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      stopped = true;
      say('Stopping …');
      void stage.strike();
    });
  }
  try {
    const code = await work(process.argv.slice(2), stage);
    if (code === 'help') console.log(usage);
    process.exitCode = code === 'help' ? 0 : code;
  } catch (error) {
    process.exitCode = error instanceof UsageError ? 2 : 1;
    // What was under way lost its partners.
    if (stopped) return;
    say(`bench: ${(error as Error).message}${error instanceof UsageError ? `\n\n${usage}` : ''}`);
  } finally {
    await stage.strike();
  }
}
