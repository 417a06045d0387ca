import { execFileSync } from 'node:child_process';
import t from 'tap';

/**
 * Prints how much room for new objects V8 has made, in MB. All objects stay alive: where some die, Node.js 24 often sees no need to
 * make more room.
 */
const script = `
import { getHeapSpaceStatistics } from 'node:v8';
import { limitNewSpace } from './src/cli/garbage.ts';
const roomMb = () =>
  getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size / 1_048_576;
if (process.argv[1] === 'limited') limitNewSpace();
const alive = [];
let mostMb = 0;
const work = () => {
  for (let i = 0; i < 2_000; i += 1) alive.push({ at: [i], more: new Array(10) });
  mostMb = Math.max(mostMb, roomMb());
  if (alive.length < 1_000_000) setImmediate(work);
  else console.log(mostMb);
};
work();
`;

function mostRoomMb(...words: string[]): number {
  // As large as Node.js 24 makes it by itself.
  const flags = ['--max-semi-space-size=64', '--import=tsx', '--input-type=module', '-e', script];
  return Number(execFileSync(process.execPath, [...flags, ...words], { encoding: 'utf8' }));
}

t.test('the room for new objects stays at 32 MB, where V8 would make it larger', async (t) => {
  t.ok(mostRoomMb() > 32, 'V8 would');
  // A collection in between may have moved some pages from one half to the other.
  t.ok(mostRoomMb('limited') < 48, 'it is far from the 128 MB that are allowed');
});
