import { run } from '../../src/cli/run.ts';

export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A command line in this process, without the environment of whoever runs the tests. */
export async function inProcess(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> {
  let [out, err] = ['', ''];
  const io = {
    stdout: { write: (text: string) => (out += text) },
    stderr: { write: (text: string) => (err += text) },
    env,
  };
  const code = await run(args, io);
  return { code, out, err };
}
