import t from 'tap';
import { asStarted, commandName } from '../../src/cli/as-started.ts';

t.test('a command is named as this process was started', async (t) => {
  const rows: [script: string, name: string][] = [
    ['/usr/local/bin/oncegate', 'oncegate'],
    ['/home/a/shop/node_modules/.bin/oncegate', 'npx oncegate'],
    ['/work/clone/dist/cli/oncegate.js', 'node dist/cli/oncegate.js'],
    ['/app/dist/cli/oncegate.js', 'node /app/dist/cli/oncegate.js'],
    ['/work/clone/src/cli/oncegate.ts', 'node --import=tsx src/cli/oncegate.ts'],
    ['/work/clone/node_modules/tap/run.js', 'oncegate'],
  ];
  for (const [script, name] of rows) t.equal(commandName(script, '/work/clone'), name, script);
});

t.test('only commands are renamed', async (t) => {
  const name = 'npx oncegate';
  t.equal(
    asStarted('run oncegate migrate up, then `oncegate serve`', name),
    'run npx oncegate migrate up, then `npx oncegate serve`',
  );
  t.equal(asStarted('Usage: oncegate <command> [flags]', name), 'Usage: npx oncegate <command> [flags]');
  for (const text of [
    'oncegate: no such record',
    'a newer oncegate made this',
    'oncegate.record',
    'oncegate keyset',
  ])
    t.equal(asStarted(text, name), text);
});
