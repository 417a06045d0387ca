import type { UpstreamTarget } from '../../src/core/policy.ts';
import type { Ending } from '../../src/core/settle.ts';
import type { AnswerSink, UpstreamCall, UpstreamClient, UpstreamRequest } from '../../src/upstream/client.ts';

/** A sink that keeps all it hears. */
export class Recorder implements AnswerSink {
  readonly heads: { readonly status: number; readonly headers: string[] }[] = [];
  readonly chunks: Buffer[] = [];
  readonly endings: Ending[] = [];
  readonly ended: Promise<Ending>;
  /** What happens when a chunk has come; its result is the sink's. */
  afterData: () => boolean = () => true;
  #resolve!: (ending: Ending) => void;

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  get body(): string {
    return Buffer.concat(this.chunks).toString('latin1');
  }

  onHead(head: { readonly status: number; readonly headers: string[] }): void {
    this.heads.push(head);
  }

  onData(chunk: Buffer): boolean {
    this.chunks.push(chunk);
    return this.afterData();
  }

  makeWay(): boolean {
    return false;
  }

  onEnd(ending: Ending): void {
    this.endings.push(ending);
    this.#resolve(ending);
  }
}

export const post: UpstreamRequest = {
  method: 'POST',
  path: '/charges?x=1',
  headers: ['Host', 'pay.example', 'Content-Type', 'application/json'],
  body: Buffer.from('{"amount":1}'),
  address: 'a',
  timeoutMs: 5_000,
  mayStart: () => true,
};

export function target(origin: string, connections = 4): UpstreamTarget {
  return { origin, timeoutMs: 5_000, connections, host: 'preserve' };
}

export function send(
  client: UpstreamClient,
  changes: Partial<UpstreamRequest> = {},
): { sink: Recorder; call: UpstreamCall; ended: Promise<Ending> } {
  const sink = new Recorder();
  const call = client.dispatch({ ...post, ...changes }, sink);
  return { sink, call, ended: sink.ended };
}
