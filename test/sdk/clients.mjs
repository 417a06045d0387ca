/**
 * One SDK, driven by lines on standard input. Each is a call { id, url, key, tenant, amount, note, headers, retries … }, and its end a
 * line on standard output: { id, threw, said, body }. Runs from a copy beside its packages (scripts/sdk-check.mjs).
 */

import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';

const sdks = {
  async stripe() {
    const { default: Stripe } = await import('stripe');
    return ({ url, key, tenant, amount, note, headers, anonymous, retries }) => {
      const { hostname: host, port, pathname } = new URL(url);
      const options = { host, port, protocol: 'http', maxNetworkRetries: retries, telemetry: false };
      const client = anonymous
        ? new Stripe(null, { ...options, authenticator: async () => {} })
        : new Stripe('sk_test_1', options);
      const ours = { ...(key && { idempotencyKey: key }), ...(tenant && { stripeAccount: tenant }) };
      const charge = { amount, currency: 'eur', source: 'tok_visa', description: note };
      // Another path or type is asked for by hand: the SDK's own are fixed.
      return pathname === '/' && headers === null
        ? client.charges.create(charge, ours)
        : client.rawRequest('POST', `${pathname.slice(1) && pathname}/v1/charges`, charge, {
            ...ours,
            additionalHeaders: headers ?? {},
          });
    };
  },
  async openai() {
    const { default: OpenAI } = await import('openai');
    return (ask) => {
      const client = new OpenAI({ apiKey: 'sk-1', baseURL: ask.url, maxRetries: ask.retries });
      const headers = { ...headersOf(ask), ...(ask.anonymous && { Authorization: null }) };
      if (ask.isStalled) return client.post('/uploads', { headers, body: Readable.toWeb(stalled()) });
      const messages = [{ role: 'user', content: `${ask.note}${ask.amount}` }];
      return client.chat.completions.create({ model: 'm', messages }, { headers });
    };
  },
  async 'aws-sdk'() {
    const { DynamoDBClient, PutItemCommand } = await import('@aws-sdk/client-dynamodb');
    return async (ask) => {
      const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
      const at = { endpoint: ask.url, region: 'eu-west-1', credentials, maxAttempts: 1 + ask.retries };
      const client = new DynamoDBClient(at);
      const add = (next) => (args) => {
        for (const [name, value] of Object.entries(headersOf(ask)))
          args.request.headers[name.toLowerCase()] = value;
        return next(args);
      };
      const dropCredentials = (next) => (args) => {
        if (ask.anonymous) delete args.request.headers.authorization;
        return next(args);
      };
      client.middlewareStack.add(add, { step: 'build' });
      client.middlewareStack.add(dropCredentials, { step: 'deserialize' });
      try {
        const Item = { id: { S: `id${ask.note}` }, amount: { N: `${ask.amount}` } };
        return await client.send(new PutItemCommand({ TableName: 't', Item }));
      } finally {
        client.destroy();
      }
    };
  },
  async 'axios + axios-retry'() {
    const { default: axios } = await import('axios');
    const { default: axiosRetry } = await import('axios-retry');
    const client = axios.create();
    // Its own condition leaves POST out; who sends keys says so.
    const retryCondition = ({ response }) => response === undefined || response.status >= 500;
    axiosRetry(client, { retryDelay: () => 10, retryCondition });
    return (ask) =>
      client.request({
        url: `${ask.url}/charges`,
        method: ask.method,
        data: ask.isStalled ? stalled() : jsonOf(ask),
        headers: { ...headersOf(ask), ...bearer(ask) },
        proxy: ask.proxy === null ? false : proxyOf(ask.proxy),
        'axios-retry': { retries: ask.retries },
      });
  },
  async got() {
    const { default: got } = await import('got');
    return (ask) =>
      got(`${ask.url}/charges`, {
        method: ask.method,
        ...(ask.isStalled ? { body: stalled() } : { json: jsonOf(ask) }),
        headers: { ...headersOf(ask), ...bearer(ask) },
        // Its own list leaves POST out.
        retry: { limit: ask.retries, methods: ['POST'] },
      });
  },
};

function headersOf({ key, tenant, headers }) {
  return { ...(key && { 'Idempotency-Key': key }), ...(tenant && { 'Stripe-Account': tenant }), ...headers };
}

function bearer({ anonymous }) {
  return anonymous ? {} : { Authorization: 'Bearer t' };
}

function jsonOf({ method, amount, note }) {
  return method === 'POST' ? { amount, note } : undefined;
}

/** A body that begins and never goes on. */
function stalled() {
  const body = new Readable({ read() {} });
  body.push('{');
  return body;
}

function proxyOf(url) {
  const { hostname: host, port } = new URL(url);
  return { protocol: 'http', host, port: Number(port) };
}

const call = await sdks[process.argv[2]]();
for await (const line of createInterface({ input: process.stdin })) void answer(JSON.parse(line));

async function answer(ask) {
  const end = await call(ask).then(
    () => ({ threw: false }),
    (error) => ({ threw: true, said: `${error.message}`, body: bodyOf(error) }),
  );
  process.stdout.write(`${JSON.stringify({ id: ask.id, ...end })}\n`);
}

/** What plain HTTP clients show beside their own words. */
function bodyOf({ response }) {
  const body = response?.data ?? response?.body ?? null;
  return typeof body === 'string' || body === null ? body : JSON.stringify(body);
}
