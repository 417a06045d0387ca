import { write } from 'node:fs';
import type { DestinationStream } from 'pino';
import { logLineDropped } from '../events.ts';

/** Bytes of lines that nobody has read yet: what a process at full speed writes in about a second. */
const maxHeldBytes = 1_048_576;
/** Bytes handed over in one piece. Docker's own log buffer has as many. */
const usualPieceBytes = 16_384;
/** Milliseconds between two tries at a pipe that is full, and at an output that fails: its reader is gone, or the disk is full. */
const fullMs = 100;
const failedMs = 1_000;
/** Milliseconds that the end of the process waits for a reader. */
const flushMs = 1_000;

/**
 * Lines on their way to a file descriptor, written in the background and in order. Where nobody reads them they must not fill the
 * memory, end the process or keep it from ending: beyond a limit new lines are dropped, whole, and counted, until half of what is
 * held has been read. Then `onFlow` hears how many those were.
 */
export class LogOutput implements DestinationStream {
  readonly #fd: number;
  readonly #pieceBytes: number;
  readonly #pieces: string[] = [];
  /** Of the last piece alone. */
  #lastBytes = 0;
  #heldBytes = 0;
  #dropped = 0;
  #isWriting = false;
  readonly #flushing = new Set<() => void>();
  onFlow: (dropped: number) => void = () => {};

  constructor(fd: number, pieceBytes: number = usualPieceBytes) {
    this.#fd = fd;
    this.#pieceBytes = pieceBytes;
  }

  write(line: string): void {
    if (this.#dropped > 0 || this.#heldBytes >= maxHeldBytes) {
      this.#dropped += 1;
      logLineDropped.publish();
      return;
    }
    const bytes = Buffer.byteLength(line);
    this.#heldBytes += bytes;
    if (this.#pieces.length > 0 && this.#lastBytes + bytes <= this.#pieceBytes) {
      this.#pieces[this.#pieces.length - 1] += line;
      this.#lastBytes += bytes;
    } else {
      this.#pieces.push(line);
      this.#lastBytes = bytes;
    }
    if (!this.#isWriting) this.#writeNext();
  }

  /** Calls back when all is written, or after a second. */
  flush(done: () => void): void {
    if (!this.#isWriting) return done();
    const end = (): void => {
      clearTimeout(timer);
      this.#flushing.delete(end);
      done();
    };
    const timer = setTimeout(end, flushMs);
    this.#flushing.add(end);
  }

  #writeNext(): void {
    const piece = this.#pieces.shift();
    this.#isWriting = piece !== undefined;
    if (piece !== undefined) return this.#write(Buffer.from(piece));
    for (const end of this.#flushing) end();
  }

  #write(piece: Buffer): void {
    if (this.#fd === 1) neverBlock();
    write(this.#fd, piece, (error, written) => {
      if (error !== null) {
        const waitMs = error.code === 'EAGAIN' ? fullMs : failedMs;
        // It keeps no process alive: whoever ends it calls `flush`.
        setTimeout(() => this.#write(piece), waitMs).unref();
        return;
      }
      this.#heldBytes -= written;
      if (written < piece.length) return this.#write(piece.subarray(written));
      if (this.#dropped > 0 && this.#heldBytes <= maxHeldBytes / 2) {
        const dropped = this.#dropped;
        this.#dropped = 0;
        this.onFlow(dropped);
      }
      this.#writeNext();
    });
  }
}

/**
 * A worker that starts or ends makes standard output block again for all who share it. A write to a full pipe would then keep a
 * thread, and with it our own end, until somebody reads.
 */
function neverBlock(): void {
  const { _handle: handle } = process.stdout as { _handle?: { setBlocking?: (isBlocking: boolean) => void } };
  // A file has none, and a terminal must keep lines in order with what else writes there.
  if (!process.stdout.isTTY) handle?.setBlocking?.(false);
}
