import { idOf, type RecordId } from '../../core/record.ts';
import { byteaArray, textArray } from './binary-array.ts';
import type { Pool } from './pool.ts';
import { type Found, parseRead } from './rows.ts';
import { read, readWhole } from './sql/read.ts';
import { withBytes } from './timeouts.ts';

/** Records by `idOf`; absent where there is none. Rejects with a StatementError. */
export async function readRecords(
  pool: Pool,
  ids: readonly RecordId[],
  timeoutMs: number,
): Promise<Map<string, Found>> {
  const values = [byteaArray(ids.map((id) => id.scope)), textArray(ids.map((id) => id.key))];
  const found = new Map<string, Found>();
  for (const row of await pool.query(read, values, timeoutMs)) {
    const parsed = parseRead(row);
    const { leftBehindBytes } = parsed;
    if (leftBehindBytes !== null) {
      const longerMs = withBytes(timeoutMs, leftBehindBytes);
      const [whole] = await pool.query(readWhole, [parsed.scope, parsed.key], longerMs);
      // Gone since: then there is none.
      if (whole !== undefined) found.set(idOf(parsed), parseRead(whole));
    } else {
      found.set(idOf(parsed), parsed);
    }
  }
  return found;
}
