import { channel } from 'node:diagnostics_channel';

/**
 * Named points on a request's way. Nothing here listens: a torture run does, from a module of its own that is loaded before the
 * program, and stops the process at the point that it wants. Otherwise a point costs one look at an empty channel.
 */
export type Failpoint =
  | 'body_complete'
  /** `detail` of these two: the statement's label. */
  | 'statement_sent'
  | 'statement_answered'
  | 'queued'
  | 'request_start'
  | 'response_head'
  | 'response_data'
  | 'response_complete'
  | 'answer_sent'
  /** Between the look and the change; only where something was found. */
  | 'sweep_found'
  | 'reap_found';

const points = channel('oncegate:failpoint');

export function failpoint(point: Failpoint, detail = ''): void {
  if (points.hasSubscribers) points.publish({ point, detail });
}
