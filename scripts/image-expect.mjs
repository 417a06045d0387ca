import { check } from './steps.mjs';

/** Starts a container that ends by itself, and compares how it ended. */
export async function expectEnd(stage, image, { code, says, ...options }) {
  const container = stage.start(image, options);
  const ended = await container.exited;
  const seen = `${options.args ?? image.config.Cmd}: exit ${ended}\n${container.output()}`;
  check(ended === code && says.test(container.output()), `not exit ${code} with ${says}, but ${seen}`);
}

export async function untilReady(stage, container, ops) {
  await stage.until(
    'ready',
    async () => {
      const ended = container.exitCode();
      check(ended === null, `ended with ${ended} before it served:\n${container.output()}`);
      return (await probe(ops)) === '200 ok\n';
    },
    60_000,
  );
}

export async function expectReplay(url) {
  const [first, again] = [await post(url, 'order-1'), await post(url, 'order-1')];
  const bodies = [await first.text(), await again.text()];
  check(first.status === 201, `the first request got ${first.status}: ${bodies[0]}`);
  check(first.headers.get('idempotent-replayed') === null, 'the first request was a replay');
  const isReplay = again.headers.get('idempotent-replayed') === 'true';
  check(isReplay, `the retry was no replay: ${again.status} ${bodies[1]}`);
  check(bodies[0] === bodies[1], `the replay differs: ${bodies.join(' and ')}`);
}

export async function expectCleanEnd(container) {
  const code = await container.exited;
  check(code === 0, `ended with ${code} after SIGTERM:\n${container.output()}`);
}

export function post(url, key) {
  const headers = { 'Idempotency-Key': key, 'Content-Type': 'application/json' };
  return fetch(url, { method: 'POST', headers, body: '{"amount":500}' });
}

/** Status and text of /readyz; empty while nothing listens. */
export async function probe(ops) {
  try {
    const answer = await fetch(`http://127.0.0.1:${ops}/readyz`);
    return `${answer.status} ${await answer.text()}`;
  } catch {
    return '';
  }
}
