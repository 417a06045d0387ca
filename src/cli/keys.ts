import { suggestion } from '../config/did-you-mean.ts';
import { loadConfig } from '../config/load.ts';
import { visitEmbedded } from '../store/postgres/embedded-visit.ts';
import { checkVersion } from '../store/postgres/migrate.ts';
import { type OperatorOptions, PostgresOperator } from '../store/postgres/operator.ts';
import { type Args, misuse, settingsOf } from './args.ts';
import type { Command } from './commands.ts';
import { configFile } from './config-file.ts';
import type { KeysCall, Ready } from './keys-call.ts';
import { listKeys } from './keys-list.ts';
import { purgeKey } from './keys-purge.ts';
import { resolveKey } from './keys-resolve.ts';
import { operatorSettings } from './keys-settings.ts';
import { showKey } from './keys-show.ts';
import { requireStore } from './require-store.ts';
import type { Io } from './run.ts';

const everywhere = ['config', 'database-url', 'embedded', 'data-dir', 'json'];
const finding = ['key', 'method', 'tenant', 'path'];
const deciding = ['reason', 'actor', 'epoch', 'yes'];

interface Action {
  readonly prepare: (call: KeysCall) => Ready;
  readonly takesId: boolean;
  readonly flags: readonly string[];
}

const actions: Readonly<Record<string, Action>> = {
  list: { prepare: listKeys, takesId: false, flags: ['state', 'older-than', 'limit', 'tenant', 'path'] },
  show: { prepare: showKey, takesId: true, flags: [...finding, 'answer'] },
  resolve: {
    prepare: resolveKey,
    takesId: true,
    flags: [
      ...finding,
      ...deciding,
      'completed',
      'released',
      'status',
      'header',
      'body',
      'body-file',
      'retention',
    ],
  },
  purge: { prepare: purgeKey, takesId: true, flags: [...finding, ...deciding] },
};

export async function keysCommand(command: Command, args: Args, io: Io): Promise<number> {
  const action = actionOf(command, args);
  const file = configFile(args, io);
  const config = loadConfig({ ...file, flags: settingsOf(command, args), env: io.env });
  // Every flag is looked at before anything is asked.
  const ready = action.prepare({ command, args, io, settings: operatorSettings(config, file) });
  const target = requireStore(config.store);
  const { durability } = target;
  if (target.kind === 'external') return await decideOn({ url: target.url, durability }, ready);
  const visit = await visitEmbedded(target.dataDir, (line) => io.stderr.write(`${line}\n`));
  try {
    return await decideOn({ url: visit.url, durability }, ready);
  } finally {
    await visit.leave();
  }
}

async function decideOn(target: OperatorOptions, ready: Ready): Promise<number> {
  await checkVersion(target.url);
  const store = new PostgresOperator(target);
  try {
    return await ready(store);
  } finally {
    await store.close();
  }
}

function actionOf(command: Command, { words, flags }: Args): Action {
  const [name, id] = words;
  const names = Object.keys(actions);
  if (name === undefined) throw misuse(command, `keys needs one of ${names.join(', ')}`);
  const action = actions[name];
  if (action === undefined) throw misuse(command, `unknown: keys ${name}; ${suggestion(name, names)}`);
  if (id !== undefined && !action.takesId) throw misuse(command, `one word too many: ${id}`);
  const allowed = [...everywhere, ...action.flags];
  for (const flag of flags.keys()) {
    if (allowed.includes(flag)) continue;
    const others = names.filter((other) => actions[other]?.flags.includes(flag));
    throw misuse(command, `--${flag} goes with ${others.join(' and ')}, not with ${name}`);
  }
  return action;
}
