import { type Config, compilePolicies } from '../config/config.ts';
import type { OperatorSettings } from '../operator/settings.ts';

/** `file`: of the config; without one there are only defaults, whatever the sidecars have. */
export function operatorSettings(config: Config, { file }: { readonly file?: string }): OperatorSettings {
  const { identity, tenantHeader, scopeParts, defaults, routes, loops } = config;
  return {
    identity,
    hasTenants: tenantHeader !== null,
    scopeParts,
    guardedMethods: [defaults, ...routes].flatMap((rule) => rule.methods),
    sweepMs: loops.sweepMs,
    knowsRoutes: file !== undefined,
    // By the same routes as the sidecars', if the config is; which upstream they have does not matter here.
    policyFor: (method, path) => compilePolicies(config, 'http://upstream.invalid').policyFor(method, path),
  };
}
