import { spawn } from 'node:child_process';
import { once } from 'node:events';
import t from 'tap';
import { canMeasureProcesses, cpuOf, memoryOf } from '../../bench/processes.ts';

const burnMs = 300;

/** A process whose work was done by a child of it that is gone, as PostgreSQL's is by a backend. */
const parent = `
const burner = 'const until = process.cpuUsage().user + ${burnMs * 1000}; while (process.cpuUsage().user < until);';
require('node:child_process').spawn(process.execPath, ['-e', burner]).once('exit', () => process.send('done'));
process.on('message', () => {});`;

t.test('a child that has ended still counts', { skip: !canMeasureProcesses }, async (t) => {
  const child = spawn(process.execPath, ['-e', parent], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  t.teardown(() => child.kill());
  const pid = child.pid as number;
  await once(child, 'message');
  t.ok(cpuOf(pid) >= burnMs * 1000, `${cpuOf(pid)} µs`);
  const { residentMb, peakMb } = memoryOf(pid);
  t.ok(residentMb > 10 && peakMb >= residentMb, `${residentMb} MB now, ${peakMb} MB at most`);
});

t.test('a process that is gone is an error, not nothing', { skip: !canMeasureProcesses }, async (t) => {
  const child = spawn(process.execPath, ['-e', '']);
  await once(child, 'exit');
  t.throws(() => cpuOf(child.pid as number), /has ended/);
});
