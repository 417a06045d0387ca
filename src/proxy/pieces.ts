/** Pieces that are kept as they are: most bodies have fewer, and cost no copy. */
const plainPieces = 16;
/** Beyond those, what is smaller than this is copied together. */
const smallBytes = 4_096;
const blockBytes = 16_384;

/**
 * A body as it arrives. Each piece of it costs some hundred bytes beside its own: a body of 1 MB sent byte by byte would
 * take 400 MB, and only its length is counted.
 */
export class Pieces {
  #pieces: Buffer[] = [];
  #block: Buffer | null = null;
  /** Of the block: what stands in the list already ends at `#from`, what was copied ends at `#to`. */
  #from = 0;
  #to = 0;
  #bytes = 0;
  #takenBytes = 0;

  /** In all that were added. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Not yet taken out. */
  get leftBytes(): number {
    return this.#bytes - this.#takenBytes;
  }

  get isEmpty(): boolean {
    return this.#pieces.length === 0 && this.#from === this.#to;
  }

  add(piece: Buffer): void {
    this.#bytes += piece.length;
    if (this.#pieces.length < plainPieces || piece.length >= smallBytes) {
      this.#list();
      this.#pieces.push(piece);
      return;
    }
    if (this.#block === null || this.#to + piece.length > this.#block.length) {
      this.#list();
      this.#block = Buffer.allocUnsafeSlow(blockBytes);
      this.#from = 0;
      this.#to = 0;
    }
    this.#to += piece.copy(this.#block, this.#to);
  }

  /** All of it, if nothing was taken out. */
  whole(): Buffer {
    this.#list();
    const [first] = this.#pieces;
    return first !== undefined && this.#pieces.length === 1
      ? first
      : Buffer.concat(this.#pieces, this.#bytes);
  }

  /** Takes the oldest out. */
  shift(): Buffer | undefined {
    if (this.#pieces.length === 0) this.#list();
    return this.#taken(this.#pieces.shift());
  }

  /** Takes the newest out. */
  pop(): Buffer | undefined {
    this.#list();
    return this.#taken(this.#pieces.pop());
  }

  clear(): void {
    this.#pieces = [];
    this.#block = null;
    this.#from = 0;
    this.#to = 0;
    this.#takenBytes = this.#bytes;
  }

  #taken(piece: Buffer | undefined): Buffer | undefined {
    this.#takenBytes += piece?.length ?? 0;
    return piece;
  }

  #list(): void {
    if (this.#block === null || this.#from === this.#to) return;
    this.#pieces.push(this.#block.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }
}
