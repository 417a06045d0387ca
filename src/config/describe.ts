import type { Config } from './config.ts';
import { duration } from './duration.ts';

type Rule = Config['defaults'];

/**
 * What is guarded where, one line a route as it is written, the defaults last:
 * `/v1/charges  guards POST → http://127.0.0.1:3000 (outcomes payments, answers kept 7d)`
 */
export function routeLines({ defaults, routes }: Config, fallbackOrigin: string | null = null): string[] {
  const rows = [
    ...routes.map((rule) => [rule.route, ruleText(rule, fallbackOrigin)] as const),
    [routes.length === 0 ? 'every path' : 'other paths', ruleText(defaults, fallbackOrigin)] as const,
  ];
  const width = Math.max(...rows.map(([path]) => path.length));
  return rows.map(([path, text]) => `${path.padEnd(width)}  ${text}`);
}

function ruleText(rule: Rule, fallbackOrigin: string | null): string {
  const upstream = rule.upstream.origin ?? fallbackOrigin ?? 'no upstream';
  if (rule.mode === 'off') return `passes everything through → ${upstream}`;
  return `guards ${rule.methods.join(', ')} → ${upstream} (${policyText(rule)})`;
}

function policyText({ outcomes, retentionMs, requireKey }: Rule): string {
  const overrides = Object.keys(outcomes.overrides);
  const table =
    overrides.length === 0 ? outcomes.preset : `${outcomes.preset} but for ${overrides.join(', ')}`;
  const key = requireKey ? '' : ', key not required';
  return `outcomes ${table}, answers kept ${duration.format(retentionMs)}${key}`;
}
