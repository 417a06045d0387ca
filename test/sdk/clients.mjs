/**
 * One SDK, driven by lines on standard input: { url, key, tenant, amount, note } makes one call, whose end is a line on standard
 * output: { threw, said, body }. Runs from a copy beside its packages (scripts/sdk-check.mjs).
 */
import { createInterface } from 'node:readline';

const sdks = {
  async stripe() {
    const { default: Stripe } = await import('stripe');
    return ({ url, key, tenant, amount, note }) => {
      const { hostname: host, port } = new URL(url);
      const options = { host, port, protocol: 'http', maxNetworkRetries: 0, telemetry: false };
      const ours = { ...(key && { idempotencyKey: key }), ...(tenant && { stripeAccount: tenant }) };
      const charge = { amount, currency: 'eur', source: 'tok_visa', description: note };
      return new Stripe('sk_test_1', options).charges.create(charge, ours);
    };
  },
  async openai() {
    const { default: OpenAI } = await import('openai');
    return ({ url, amount, note, ...rest }) => {
      const client = new OpenAI({ apiKey: 'sk-1', baseURL: url, maxRetries: 0 });
      const messages = [{ role: 'user', content: `${note}${amount}` }];
      return client.chat.completions.create({ model: 'm', messages }, { headers: headersOf(rest) });
    };
  },
  async 'aws-sdk'() {
    const { DynamoDBClient, PutItemCommand } = await import('@aws-sdk/client-dynamodb');
    return async ({ url, amount, note, ...rest }) => {
      const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
      const client = new DynamoDBClient({ endpoint: url, region: 'eu-west-1', credentials, maxAttempts: 1 });
      const add = (next) => (args) => {
        Object.assign(args.request.headers, headersOf(rest));
        return next(args);
      };
      client.middlewareStack.add(add, { step: 'build' });
      try {
        const Item = { id: { S: `id${note}` }, amount: { N: `${amount}` } };
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
    const retryCondition = ({ response }) => response?.status === 503;
    axiosRetry(client, { retries: 1, retryDelay: () => 10, retryCondition });
    return ({ url, amount, note, ...rest }) =>
      client.post(`${url}/charges`, { amount, note }, { headers: headersOf(rest) });
  },
  async got() {
    const { default: got } = await import('got');
    return ({ url, amount, note, ...rest }) =>
      got.post(`${url}/charges`, { json: { amount, note }, headers: headersOf(rest), retry: { limit: 0 } });
  },
};

function headersOf({ key, tenant }) {
  return { ...(key && { 'Idempotency-Key': key }), ...(tenant && { 'Stripe-Account': tenant }) };
}

const call = await sdks[process.argv[2]]();
for await (const line of createInterface({ input: process.stdin })) {
  const end = await call(JSON.parse(line)).then(
    () => ({ threw: false }),
    (error) => ({ threw: true, said: `${error.message}`, body: bodyOf(error) }),
  );
  process.stdout.write(`${JSON.stringify(end)}\n`);
}

/** What plain HTTP clients show beside their own words. */
function bodyOf({ response }) {
  const body = response?.data ?? response?.body ?? null;
  return typeof body === 'string' || body === null ? body : JSON.stringify(body);
}
