/**
 * PostgreSQL's binary wire form of one-dimensional arrays. The driver sends a Buffer parameter as binary, so a batch
 * travels without hex or escaping: the text form of 256 bodies cost most of the sidecar's CPU and broke at 862 MB.
 */
const headerBytes = 20;
const oid = { bool: 16, bytea: 17, text: 25, float8: 701 } as const;

export function byteaArray(values: readonly (Buffer | null)[]): Buffer {
  let size = headerBytes;
  for (const value of values) size += 4 + (value === null ? 0 : value.length);
  const out = allocate(size, oid.bytea, values.length);
  let at = headerBytes;
  for (const value of values) {
    if (value === null) {
      at = out.writeInt32BE(-1, at);
      continue;
    }
    at = out.writeInt32BE(value.length, at);
    at += value.copy(out, at);
  }
  return out;
}

export function textArray(values: readonly (string | null)[]): Buffer {
  let size = headerBytes;
  for (const value of values) size += 4 + (value === null ? 0 : Buffer.byteLength(value));
  const out = allocate(size, oid.text, values.length);
  let at = headerBytes;
  for (const value of values) {
    if (value === null) {
      at = out.writeInt32BE(-1, at);
      continue;
    }
    const written = out.write(value, at + 4);
    out.writeInt32BE(written, at);
    at += 4 + written;
  }
  return out;
}

/** Of what is known to be ASCII, one byte a letter: half the cost. */
export function asciiArray(values: readonly string[]): Buffer {
  let size = headerBytes;
  for (const value of values) size += 4 + value.length;
  const out = allocate(size, oid.text, values.length);
  let at = headerBytes;
  for (const value of values) {
    at = out.writeInt32BE(value.length, at);
    at += out.write(value, at, 'latin1');
  }
  return out;
}

export function float8Array(values: readonly (number | null)[]): Buffer {
  const out = allocate(headerBytes + values.length * 12, oid.float8, values.length);
  let at = headerBytes;
  for (const value of values) {
    at = out.writeInt32BE(value === null ? -1 : 8, at);
    if (value !== null) at = out.writeDoubleBE(value, at);
  }
  return out.subarray(0, at);
}

export function boolArray(values: readonly boolean[]): Buffer {
  const out = allocate(headerBytes + values.length * 5, oid.bool, values.length);
  let at = headerBytes;
  for (const value of values) {
    at = out.writeInt32BE(1, at);
    at = out.writeUInt8(value ? 1 : 0, at);
  }
  return out;
}

/** Number of dimensions, may-hold-nulls flag, element type, length, lower bound. */
function allocate(size: number, elementOid: number, length: number): Buffer {
  const out = Buffer.allocUnsafe(size);
  out.writeInt32BE(1, 0);
  out.writeInt32BE(1, 4);
  out.writeInt32BE(elementOid, 8);
  out.writeInt32BE(length, 12);
  out.writeInt32BE(1, 16);
  return out;
}
