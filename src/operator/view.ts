import type { StoredAnswer } from '../core/record.ts';
import type { History, OperatorStore, RecordView } from '../store/operator.ts';
import { type NextStep, nextSteps } from './next-steps.ts';
import type { OperatorSettings } from './settings.ts';

/** All that is known about one record. */
export interface View {
  readonly record: RecordView;
  readonly history: History;
  readonly answer: AnswerView;
  readonly next: readonly NextStep[];
}

/** The stored answer may hold secrets: it is read only when it is asked for by name. */
export type AnswerView =
  | { readonly kind: 'not_asked' }
  | { readonly kind: 'none' }
  | { readonly kind: 'kept'; readonly answer: StoredAnswer };

export interface ViewDeps {
  readonly store: OperatorStore;
  readonly settings: OperatorSettings;
}

/** Rejects with `store_unavailable`. */
export async function view(
  { store, settings }: ViewDeps,
  record: RecordView,
  { withAnswer }: { readonly withAnswer: boolean },
): Promise<View> {
  const history = await store.history(record);
  const answer = withAnswer ? answerView(await store.answerAt(record)) : ({ kind: 'not_asked' } as const);
  return { record, history, answer, next: nextSteps(settings, record) };
}

function answerView(answer: StoredAnswer | null): AnswerView {
  return answer === null ? { kind: 'none' } : { kind: 'kept', answer };
}
