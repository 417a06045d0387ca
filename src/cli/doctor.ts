import { type Config, compilePolicies } from '../config/config.ts';
import { loadConfig } from '../config/load.ts';
import { type Check, type Finding, type Group, ok, skipped } from '../doctor/check.ts';
import { judgeFault, judgeNode, judgeWarning } from '../doctor/judge-config.ts';
import { judgePort, judgeSharing, judgeTenant } from '../doctor/judge-exposure.ts';
import { judgeUpstream } from '../doctor/judge-upstream.ts';
import { exitCodeOf, jsonOf, lineOf, verdictOf } from '../doctor/report.ts';
import { reach } from '../upstream/reach.ts';
import { type Args, settingsOf, upstreamWord } from './args.ts';
import type { Command } from './commands.ts';
import { configFile } from './config-file.ts';
import { isOncegate, tryPort } from './doctor-ports.ts';
import { storeChecks } from './doctor-store.ts';
import { nodeWarning } from './node-line.ts';
import type { Io } from './run.ts';
import { storeFlags } from './store-flags.ts';

/** Looks at everything that `serve` depends on and starts nothing that stays. A finding is told as soon as it is known. */
export async function doctorCommand(command: Command, args: Args, io: Io): Promise<number> {
  const checks: Check[] = [];
  const asJson = args.flags.has('json');
  for await (const check of allChecks(command, args, io)) {
    if (!asJson) io.stdout.write(lineOf(check, checks.at(-1)?.group ?? null));
    checks.push(check);
  }
  io.stdout.write(asJson ? jsonOf(checks) : verdictOf(checks));
  return exitCodeOf(checks);
}

async function* allChecks(command: Command, args: Args, io: Io): AsyncGenerator<Check> {
  const config = load(command, args, io);
  yield* inGroup('Config', configChecks(config));
  if (!isLoaded(config)) {
    for (const group of ['Store', 'Upstream', 'Exposure'] as const)
      yield { group, name: group.toLowerCase(), ...skipped('not looked at, because of config') };
    return;
  }
  yield* storeChecks(config, storeFlags(args));
  yield* inGroup('Upstream', await upstreamChecks(config));
  yield* inGroup('Exposure', await exposureChecks(config));
}

type Named = readonly [name: string, finding: Finding];

function* inGroup(group: Group, findings: readonly Named[]): Generator<Check> {
  for (const [name, finding] of findings) yield { group, name, ...finding };
}

type Loaded = Config | { readonly fault: unknown };

function load(command: Command, args: Args, io: Io): Loaded {
  try {
    const flags = [...upstreamWord(args), ...settingsOf(command, args)];
    return loadConfig({ ...configFile(args, io), flags, env: io.env });
  } catch (fault) {
    return { fault };
  }
}

function isLoaded(loaded: Loaded): loaded is Config {
  return !('fault' in loaded);
}

function configChecks(config: Loaded): Named[] {
  const node = judgeNode(process.version, nodeWarning(process.version, new Date()));
  if (!isLoaded(config))
    return [
      ['config', judgeFault(config.fault)],
      ['node', node],
    ];
  return [
    ['config', judgeRoutes(config)],
    ...config.warnings.map((text): Named => ['config', judgeWarning(text)]),
    ['node', node],
  ];
}

function judgeRoutes(config: Config): Finding {
  try {
    const { all } = compilePolicies(config);
    return ok(`valid, ${all.length === 1 ? 'no routes' : `routes: ${all.length - 1}`}`);
  } catch (fault) {
    return judgeFault(fault);
  }
}

/** Milliseconds; serve would wait longer, a person need not. */
const connectMs = 3_000;

async function upstreamChecks({ defaults, routes }: Config): Promise<Named[]> {
  const origins = new Set([defaults, ...routes].map(({ upstream }) => upstream.origin));
  const named = [...origins].filter((origin) => origin !== null);
  if (named.length === 0) return [['upstream', skipped('not looked at, because of config')]];
  return await Promise.all(
    named.map(
      async (origin): Promise<Named> => [
        'upstream',
        judgeUpstream(origin, await reach(origin, connectMs), new Date()),
      ],
    ),
  );
}

async function exposureChecks({ listen, tenantHeader, store }: Config): Promise<Named[]> {
  const [data, ops] = await Promise.all([tryPort(listen.data), tryPort(listen.ops)]);
  const sidecar = ops === 'in_use' && (await isOncegate(listen.ops));
  return [
    ['data', judgePort('data', listen.data, data, sidecar)],
    ['ops', judgePort('ops', listen.ops, ops, sidecar)],
    ['tenant', judgeTenant(tenantHeader)],
    ['service', judgeSharing(store)],
  ];
}
