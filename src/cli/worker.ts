import type { Running } from '../main.ts';
import type { Answers, Question, Said } from './worker-channel.ts';

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
  process.on('message', (question: Question) => void onQuestion(question));
  say({ kind: 'serving', dataUrl });
}
