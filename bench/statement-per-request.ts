/**
 * Contender: idempotency as it is usually built. One INSERT before the upstream, one UPDATE after it, each a commit of
 * its own; fingerprint over the raw body. As fast as that can be: prepared statements, the smallest table, no lease,
 * no sweeper, no read-back of what is not known to be committed.
 */
import { hash } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import pg from 'pg';
import { Pool } from 'undici';
import { createLoggedServer } from './logged-server.ts';

const reserve = {
  name: 'reserve',
  text: `INSERT INTO idempotency_key (scope, key, fingerprint)
VALUES ($1, $2, $3)
ON CONFLICT (scope, key) DO NOTHING
RETURNING key`,
};

const complete = {
  name: 'complete',
  text: `UPDATE idempotency_key
SET completed_at = clock_timestamp(), status = $3, headers = $4, body = $5
WHERE scope = $1
  AND key = $2
  AND completed_at IS NULL`,
};

const read = {
  name: 'read',
  text: `SELECT fingerprint, completed_at, status, headers, body
FROM idempotency_key
WHERE scope = $1
  AND key = $2`,
};

interface Row {
  readonly fingerprint: string;
  readonly completed_at: Date | null;
  readonly status: number;
  readonly headers: string;
  readonly body: Buffer;
}

const [upstreamUrl, port, databaseUrl] = process.argv.slice(2) as [string, string, string];
// As many connections as Oncegate has by default.
const store = new pg.Pool({ connectionString: databaseUrl, max: 10 });
const upstream = new Pool(upstreamUrl, { connections: 128 });

async function handle(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  const { method, url, headers } = request;
  const body = request.body as Buffer;
  const key = headers['idempotency-key'];
  if (typeof key !== 'string') return reply.code(400).send({ error: 'Idempotency-Key is missing' });
  const scope = `${method} ${url}`;
  const fingerprint = hash('sha256', body, 'hex');
  const reserved = await store.query({ ...reserve, values: [scope, key, fingerprint] });
  if (reserved.rowCount !== 1) return await answerAgain(reply, scope, key, fingerprint);

  const { connection: _, 'content-length': __, ...forwarded } = headers;
  const answer = await upstream.request({ method: 'POST', path: url, headers: forwarded, body });
  const answerBody = Buffer.from(await answer.body.arrayBuffer());
  const { connection: ___, 'keep-alive': ____, 'transfer-encoding': _____, ...kept } = answer.headers;
  await store.query({
    ...complete,
    values: [scope, key, answer.statusCode, JSON.stringify(kept), answerBody],
  });
  return reply.code(answer.statusCode).headers(kept).send(answerBody);
}

async function answerAgain(
  reply: FastifyReply,
  scope: string,
  key: string,
  fingerprint: string,
): Promise<unknown> {
  const { rows } = await store.query<Row>({ ...read, values: [scope, key] });
  const [row] = rows;
  if (row?.fingerprint !== fingerprint) return reply.code(422).send({ error: 'key reused' });
  if (row.completed_at === null) return reply.code(409).send({ error: 'in progress' });
  const headers = JSON.parse(row.headers) as Record<string, string>;
  return reply.code(row.status).headers(headers).send(row.body);
}

const app = createLoggedServer();
app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) =>
  done(null, body),
);
app.post('/*', handle);
await app.listen({ host: '127.0.0.1', port: Number(port) });
