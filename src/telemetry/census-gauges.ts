import { Gauge, type Registry } from 'prom-client';
import { censusTaken } from '../events.ts';

/**
 * Of the whole store, so every instance says the same. Before the first census nothing is known: NaN,
 * which alerts on nothing. Gives back what ends it.
 */
export function censusGauges(registry: Registry): () => void {
  const registers = [registry];
  const records = new Gauge({
    name: 'oncegate_records',
    help: 'Records that are not settled, by state; counted up to 100,000.',
    labelNames: ['state'],
    registers,
  });
  const gauge = (name: string, help: string): Gauge => {
    const one = new Gauge({ name, help, registers });
    one.set(Number.NaN);
    return one;
  };
  const oldest = gauge(
    'oncegate_unknown_oldest_seconds',
    'Age of the oldest record that is unknown or dead_letter; 0: there is none.',
  );
  const overdue = gauge('oncegate_in_progress_overdue', 'Records in progress past their deadline.');
  const late = gauge('oncegate_late_answers', 'Answers kept that came after another attempt had the key.');
  return censusTaken.subscribe((census) => {
    records.set({ state: 'in_progress' }, census.inProgress);
    records.set({ state: 'unknown' }, census.unknown);
    records.set({ state: 'dead_letter' }, census.deadLetter);
    oldest.set((census.oldestWaitingMs ?? 0) / 1000);
    overdue.set(census.overdue);
    late.set(census.lateAnswers);
  });
}
