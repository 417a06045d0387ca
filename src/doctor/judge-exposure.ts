import type { Address } from '../config/address.ts';
import { type Finding, failure, ok } from './check.ts';

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
    ? ok('none: all clients share one space of keys')
    : ok(`from the header ${tenantHeader}, which only a gateway that you trust may set`);
}

function textOf({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
