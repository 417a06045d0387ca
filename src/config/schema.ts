import * as z from 'zod';
import { defaultsSchema, routeSchema, upstreamSchema } from './policy-schema.ts';
import {
  addressField,
  durationField,
  forEveryMap,
  headerField,
  keySourceField,
  storeUrlField,
} from './scalars.ts';

const listen = z.strictObject({
  data: addressField().prefault('0.0.0.0:8080').describe('The proxied service: clients speak to this port.'),
  ops: addressField().prefault('0.0.0.0:9090').describe('/livez, /readyz, /startupz and /metrics.'),
});

const store = z
  .strictObject({
    url: storeUrlField()
      .exactOptional()
      .describe('PostgreSQL of your own; also read from DATABASE_URL. All replicas share it.')
      .meta({ examples: ['postgres://user:password@host:5432/database'] }),
    embedded: z
      .boolean()
      .prefault(false)
      .describe(
        'A PostgreSQL of this process alone, under dataDir: to try it out, never for several replicas.',
      ),
    dataDir: z
      .string()
      .min(1)
      .prefault('.oncegate')
      .describe('Where the embedded PostgreSQL keeps its data.'),
    migrate: z
      .enum(['check', 'auto'])
      .prefault('check')
      .describe('check: refuse to start on another schema version (exit 3). auto: migrate at start.'),
    poolSize: z
      .int()
      .min(6)
      .max(1000)
      .prefault(10)
      .describe(
        'Connections to PostgreSQL of this instance, at most; five are reserved for saving answers and background work.',
      ),
    durability: z
      .enum(['strict', 'relaxed'])
      .prefault('strict')
      .describe(
        'strict: refuse a server that may lose acknowledged commits: fsync or synchronous_commit off; or, where synchronous_standby_names is set, synchronous_commit other than on and remote_apply. relaxed: accept it; a crash or a failover of PostgreSQL may let a key run twice.',
      ),
  })
  .refine((value) => !(value.embedded === true && value.url !== undefined), {
    error: 'embedded: true and url exclude each other; keep one of them',
    path: ['embedded'],
    ...forEveryMap,
  });

const tenant = z.strictObject({
  from: z
    .union([
      z.literal('none'),
      z.strictObject({
        header: headerField('X-Tenant').describe('Required on guarded requests: absent gets 401.'),
      }),
    ])
    .prefault('none')
    .describe(
      'Who a key belongs to: none, or { header: Name }. Let only a gateway that you trust set that header.',
    )
    .meta({ examples: ['none', { header: 'X-Tenant' }] }),
});

const scope = z
  .array(z.enum(['tenant', 'endpoint']))
  .refine((parts) => ['tenant', 'tenant,endpoint'].includes(parts.join()), {
    error: 'is no scope; write [tenant, endpoint] or [tenant]',
  })
  .prefault(['tenant', 'endpoint'])
  .describe(
    'Where a key counts. [tenant, endpoint]: one key on two paths is two operations. [tenant]: it is one.',
  );

const key = z
  .strictObject({
    from: z
      .array(keySourceField())
      .min(1, { error: 'is empty; write [header:Idempotency-Key]' })
      .refine((names) => new Set(names).size === names.length, { error: 'names a header twice; keep one' })
      .prefault(['header:Idempotency-Key', 'header:X-Idempotency-Key'])
      .describe('Headers that may carry the key. Two that disagree: 400.'),
    minLength: z
      .int()
      .min(0)
      .max(255)
      .prefault(0)
      .describe('Shorter keys get 400. 0: any key of at least one byte.'),
    maxLength: z.int().min(1).max(255).prefault(255).describe('Longer keys get 400.'),
  })
  .refine((value) => !(value.minLength > value.maxLength), {
    error: 'is over maxLength; no key could ever be valid; write a smaller number',
    path: ['minLength'],
    ...forEveryMap,
  });

const routing = z.strictObject({
  ignoreCase: z
    .boolean()
    .prefault(false)
    .describe(
      'true: routes match paths in any letter case, as Express, Fiber and ASP.NET do. Where a key counts stays the path as it came.',
    ),
});

const loops = z.strictObject({
  sweep: durationField('100ms', '1h')
    .prefault('15s')
    .describe('How often requests of dead instances are marked unknown.'),
  reap: durationField('100ms', '24h')
    .prefault('60s')
    .describe('How often records past their retention are deleted.'),
});

const drain = z.strictObject({
  delay: durationField('0s', '1h')
    .prefault('5s')
    .describe('After SIGTERM: how long new requests are still taken while load balancers notice /readyz.'),
  max: durationField('0s', '24h')
    .prefault('40s')
    .describe(
      "How long running requests may take to end. Longer than the upstream's timeout, or outcomes become unknown.",
    ),
});

const levels = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;
const log = z.strictObject({
  level: z
    .enum(levels)
    .prefault('info')
    .describe('Lines on standard output from this level up: JSON, or text where that is a terminal.'),
});

/**
 * The whole configuration: types, defaults, bounds and descriptions in one place. Input is what people write (`30s`, `1mb`,
 * `header:Name`), output is what code uses (milliseconds, bytes, lower-case names). An option is here only if it works.
 */
export const configSchema = z.strictObject({
  upstream: upstreamSchema.prefault({}).describe('The service that stands behind the sidecar.'),
  listen: listen.prefault({}).describe('Where to listen, as host:port. Port 0 takes any free one.'),
  store: store.prefault({}).describe('Where keys and answers are kept.'),
  tenant: tenant.prefault({}).describe('Keys of one tenant are never seen by another.'),
  scope,
  lease: durationField('1s', '1h')
    .prefault('60s')
    .describe(
      'How long an instance is thought alive after its last renewal. Its requests are unknown at the latest lease + sweep after a crash.',
    ),
  workers: z
    .int()
    .min(1)
    .max(64)
    .prefault(1)
    .describe(
      'Processes that share the ports, for a gateway on several cores. Each is an instance with its own poolSize.',
    ),
  key: key.prefault({}).describe('Where the key comes from and what it may be.'),
  defaults: defaultsSchema
    .prefault({})
    .describe('The policy of every path; each of these again under a route.'),
  routes: z
    .array(routeSchema)
    .meta({ examples: [[{ path: '/v1/charges', retention: '7d' }]] })
    .prefault([])
    .describe('Policies of single paths. Their order does not matter.'),
  routing: routing.prefault({}).describe('How paths are compared with routes.'),
  loops: loops.prefault({}).describe('Background work; safe on any number of replicas.'),
  drain: drain.prefault({}).describe('A clean end on SIGTERM and SIGINT.'),
  log: log.prefault({}).describe('Logs.'),
});

/** What the schema makes of a config: every default filled in. */
export type Settings = z.output<typeof configSchema>;
