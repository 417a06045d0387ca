/** A PostgreSQL backend message: a type byte, an int32 length that counts itself, a body. */
export interface ServerMessage {
  readonly type: string;
  /** The first bytes of the body; of a CommandComplete its whole tag. */
  readonly start: Buffer;
}

const START_BYTES = 64;

/** Cuts what a server sends into its messages. Without TLS only. */
export class ServerMessages {
  #pending = Buffer.alloc(0);
  #skip = 0;
  #foreign = false;

  /** The messages of which enough is known with this chunk. */
  feed(chunk: Buffer): ServerMessage[] {
    const found: ServerMessage[] = [];
    if (this.#foreign) return found;
    let data = Buffer.concat([this.#pending, chunk]);
    for (;;) {
      const skipped = Math.min(this.#skip, data.length);
      this.#skip -= skipped;
      data = data.subarray(skipped);
      if (data.length < 5) break;
      const length = data.readInt32BE(1);
      // Not PostgreSQL, or not in clear: there is nothing to find.
      this.#foreign = length < 4;
      if (this.#foreign) break;
      const end = 5 + Math.min(length - 4, START_BYTES);
      if (data.length < end) break;
      found.push({ type: data.toString('latin1', 0, 1), start: data.subarray(5, end) });
      this.#skip = 1 + length;
    }
    this.#pending = Buffer.from(data);
    return found;
  }
}
