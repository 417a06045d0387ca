#!/usr/bin/env node
import { run } from './run.ts';

// The reader closed its end of the pipe, as `oncegate help | head` does, or the terminal: no reason to complain, or to stop serving.
const readerGone = new Set(['EPIPE', 'EIO', 'ERR_STREAM_DESTROYED']);
for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (!readerGone.has(error.code ?? '')) throw error;
  });
// Not process.exit: what was written to a pipe must still get out.
process.exitCode = await run(process.argv.slice(2), process);
