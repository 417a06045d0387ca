import type { Running } from '../main.ts';
import type { Answers, Order, Question, Said } from './worker-channel.ts';

/** In a worker, from its beginning: only the first process stops it, which alone knows whether a signal is the first or a second one. */
export function onOrder(drain: (signal: NodeJS.Signals) => void): void {
  process.on('message', (said: Order | Question) => {
    if ('drain' in said) drain(said.drain);
  });
}

/** In a worker, once it serves: tells the first process, and answers what that is asked on the ops port. */
export function answerFirstProcess({ dataUrl, health }: Running): void {
  const say = (said: Said): void => void process.send?.(said);
  const answers: { [About in keyof Answers]: () => Promise<Answers[About]> } = {
    readiness: health.notReady,
    metrics: health.metrics.json,
  };
  const onQuestion = async ({ question, about }: Question): Promise<void> => {
    const answer = await answers[about]();
    if (process.connected) say({ kind: 'answer', question, answer });
  };
  process.on('message', (said: Order | Question) => {
    if ('question' in said) void onQuestion(said);
  });
  say({ kind: 'serving', dataUrl });
}
