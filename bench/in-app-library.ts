/**
 * Contender: a Fastify service that guards itself with @node-idempotency/core, which takes any store that has its three
 * methods; here that is PostgreSQL, so that it survives a restart as Oncegate's does. There is no proxy and no upstream:
 * what a sidecar spends on the way to the service, this spends nowhere.
 */
import { Idempotency, type IdempotencyParams } from '@node-idempotency/core';
import type { FastifyRequest } from 'fastify';
import pg from 'pg';
import { answerBody, answerHeaders, path } from './exchange.ts';
import { createLoggedServer } from './logged-server.ts';

const [port, databaseUrl] = process.argv.slice(2) as [string, string];
// As many connections as Oncegate has by default.
const pool = new pg.Pool({ connectionString: databaseUrl, max: 10 });

/** As SET NX with a time to live is in Redis, for which the library was made: what has expired is not there. */
const setIfNotExists = {
  name: 'set_if_not_exists',
  text: `INSERT INTO idempotency_entry AS entry (key, value, expires_at)
VALUES ($1, $2, clock_timestamp() + $3 * interval '1 ms')
ON CONFLICT (key) DO UPDATE
SET value = EXCLUDED.value, expires_at = EXCLUDED.expires_at
WHERE entry.expires_at <= clock_timestamp()`,
};

const set = {
  name: 'set',
  text: `INSERT INTO idempotency_entry (key, value, expires_at)
VALUES ($1, $2, clock_timestamp() + $3 * interval '1 ms')
ON CONFLICT (key) DO UPDATE
SET value = EXCLUDED.value, expires_at = EXCLUDED.expires_at`,
};

const get = {
  name: 'get',
  text: `SELECT value
FROM idempotency_entry
WHERE key = $1
  AND expires_at > clock_timestamp()`,
};

/** The library always gives one; the type says that it might not. */
const dayMs = 86_400_000;

const idempotency = new Idempotency({
  async setIfNotExists(key, value, { ttl = dayMs } = {}) {
    const { rowCount } = await pool.query({ ...setIfNotExists, values: [key, value, ttl] });
    return rowCount === 1;
  },
  async set(key, value, { ttl = dayMs }) {
    await pool.query({ ...set, values: [key, value, ttl] });
  },
  async get(key) {
    const { rows } = await pool.query<{ value: string }>({ ...get, values: [key] });
    return rows[0]?.value;
  },
});

function paramsOf({ headers, url, method, body }: FastifyRequest): IdempotencyParams {
  return { headers, path: url, method, body: body as Record<string, unknown> };
}

let executions = 0;
const app = createLoggedServer();
app.post(path, async (request, reply) => {
  const params = paramsOf(request);
  const known = await idempotency.onRequest(params);
  if (known !== undefined) {
    const { status, headers } = known.additional as { status: number; headers: Record<string, string> };
    return reply.code(status).headers(headers).header('Idempotent-Replayed', 'true').send(known.body);
  }
  executions += 1;
  // Kept before it is sent: else a crash between the two would let the request run again.
  await idempotency.onResponse(params, {
    body: answerBody,
    additional: { status: 201, headers: answerHeaders },
  });
  return reply.code(201).headers(answerHeaders).send(answerBody);
});

process.on('message', () => process.send?.({ executions }));
await app.listen({ host: '127.0.0.1', port: Number(port) });
