#!/usr/bin/env node
import { run } from './run.ts';

// `oncegate help | head` closes the pipe early: no reason to complain.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});
// Not process.exit: what was written to a pipe must still get out.
process.exitCode = await run(process.argv.slice(2), process);
