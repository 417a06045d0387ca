/** Reads what src/store/postgres/binary-array.ts writes: the server's side of the wire. */
const headerBytes = 20;
const readers: Record<number, (from: Buffer) => unknown> = {
  16: (from) => from[0] === 1,
  17: (from) => Buffer.from(from),
  25: (from) => from.toString(),
  701: (from) => from.readDoubleBE(),
};

export function arrayOf<T>(value: unknown): T[] {
  const wire = value as Buffer;
  const read = readers[wire.readInt32BE(8)] as (from: Buffer) => unknown;
  const length = wire.readInt32BE(12);
  const values = new Array<unknown>(length);
  let at = headerBytes;
  for (let i = 0; i < length; i += 1) {
    const size = wire.readInt32BE(at);
    at += 4;
    values[i] = size === -1 ? null : read(wire.subarray(at, at + size));
    if (size > 0) at += size;
  }
  return values as T[];
}
