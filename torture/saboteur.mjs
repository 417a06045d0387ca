/**
 * Loaded into a sidecar before its program (`node --import`). Listens at the named points of src/failpoint.ts, and at
 * undici's own for "request sent". When the one that it was told of is reached it says so and stands still, in the middle of
 * that call: the process runs no further instruction until it is let go, killed, or stopped.
 *   fd 3  orders, one JSON line each: { id, point, detail }
 *   fd 4  what was reached, one JSON line each; and the byte that lets it go on
 */
import { subscribe } from 'node:diagnostics_channel';
import { readSync, writeSync } from 'node:fs';
import { Socket } from 'node:net';

const orders = new Socket({ fd: 3, readable: true, writable: false });
const reports = 4;
/** @type {{ id: number, point: string, detail: string } | null} */
let armed = null;

/** @param {object} what */
const tell = (what) => void writeSync(reports, `${JSON.stringify(what)}\n`);

/**
 * @param {string} point
 * @param {string} detail
 */
function reached(point, detail) {
  if (armed === null || armed.point !== point || (armed.detail !== '' && armed.detail !== detail)) return;
  const { id } = armed;
  armed = null;
  tell({ kind: 'reached', id });
  readSync(reports, Buffer.alloc(1));
}

subscribe('oncegate:failpoint', (message) => {
  const { point, detail } = /** @type {{ point: string, detail: string }} */ (message);
  reached(point, detail);
});
subscribe('undici:request:bodySent', () => reached('request_sent', ''));

let text = '';
orders.setEncoding('utf8');
orders.on('data', (chunk) => {
  text += chunk;
  const lines = text.split('\n');
  text = lines.pop() ?? '';
  for (const line of lines) {
    armed = JSON.parse(line);
    tell({ kind: 'armed', id: armed?.id ?? 0 });
  }
});
// Whoever gave orders has gone. Not by process.exit, which was seen to hang.
orders.on('end', () => process.kill(process.pid, 'SIGKILL'));
orders.unref();
