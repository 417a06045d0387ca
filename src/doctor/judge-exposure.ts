import type { Address } from '../config/address.ts';
import type { Config, StoreConfig } from '../config/config.ts';
import { type Finding, failure, ok, warning } from './check.ts';

/** What came of trying to listen there. */
export type PortFacts = 'free' | 'in_use' | 'not_allowed' | 'not_of_this_machine';

const uses = {
  data: 'clients connect here',
  ops: 'probes and metrics, no secrets; keep it inside the cluster',
} as const;

const loopback = /^(127\..*|::1|localhost)$/;

/** `sidecar`: an Oncegate answers on the ops port, so what is taken is taken by it. */
export function judgePort(use: 'data' | 'ops', address: Address, port: PortFacts, sidecar: boolean): Finding {
  const where = textOf(address);
  const what = loopback.test(address.host) ? 'for this machine alone' : uses[use];
  const other = 'choose another with --listen, --ops-listen, or listen in the config';
  switch (port) {
    case 'free':
      return ok(`${where} is free: ${what}`);
    case 'in_use':
      return sidecar
        ? ok(`${where} is taken, a sidecar is running here: ${what}`)
        : failure(
            `${where} is taken, and not by an Oncegate`,
            `end what listens there, or ${other}`,
            'port_in_use',
          );
    case 'not_allowed':
      return failure(`${where} needs privileges`, other, 'port_in_use');
    case 'not_of_this_machine':
      return failure(`${where} is no address of this machine`, other, 'port_in_use');
  }
}

export function judgeTenant(tenantHeader: string | null): Finding {
  return tenantHeader === null
    ? warning(
        'tenant none: who repeats the key and the request of another client gets the answer of that client',
        'set tenant.from where clients do not trust each other',
      )
    : ok(`from the header ${tenantHeader}, which only a gateway that you trust may set`);
}

/** An embedded store is of one process, and so of one service. */
export function judgeSharing(store: StoreConfig): Finding {
  return store.kind === 'external'
    ? warning(
        'two services on one database answer for each other where their keys and paths are alike',
        'give each service a database of its own',
      )
    : ok('a store of its own');
}

/** For the log of a start: who may get whose answer. */
export function exposureWarnings({ tenantHeader, store }: Config): string[] {
  return [judgeTenant(tenantHeader), judgeSharing(store)].flatMap((finding) =>
    finding.level === 'warning' ? [`${finding.text}; ${finding.advice}`] : [],
  );
}

function textOf({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
