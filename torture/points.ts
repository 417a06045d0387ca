import type { Path } from './policies.ts';

/**
 * How a point is met. `fresh`: by the first request of a key. `queued`: by one that stands behind another. `held`: by
 * background work while the upstream holds the key. `overdue`: by a sweeper that finds the key past its deadline.
 * `expired`: by a reaper that finds an old key. `again`: by a retry that takes a key over.
 */
type Scene = 'fresh' | 'queued' | 'held' | 'overdue' | 'expired' | 'again';

/** Where it is seen: in the process, on a line, or by the log line that says so. */
type Site =
  | { readonly kind: 'inside'; readonly point: string; readonly detail: string }
  | { readonly kind: 'upstream line' | 'client line' | 'drain' };

export interface Point {
  readonly name: string;
  readonly scene: Scene;
  readonly site: Site;
  readonly paths: readonly Path[];
}

const inside = (point: string, detail = ''): Site => ({ kind: 'inside', point, detail });
const any: readonly Path[] = ['/plain', '/marked', '/mixed', '/brief', '/large'];

export const points: readonly Point[] = [
  { name: 'body complete', scene: 'fresh', site: inside('body_complete'), paths: any },
  { name: 'reserve sent', scene: 'fresh', site: inside('statement_sent', 'reserve'), paths: any },
  { name: 'reserve acknowledged', scene: 'fresh', site: inside('statement_answered', 'reserve'), paths: any },
  {
    name: 'mark sent',
    scene: 'fresh',
    site: inside('statement_sent', 'mark_dispatched'),
    paths: ['/marked'],
  },
  {
    name: 'mark acknowledged',
    scene: 'fresh',
    site: inside('statement_answered', 'mark_dispatched'),
    paths: ['/marked'],
  },
  { name: 'queued', scene: 'queued', site: inside('queued'), paths: ['/narrow'] },
  { name: 'request start', scene: 'fresh', site: inside('request_start'), paths: any },
  { name: 'half the request', scene: 'fresh', site: { kind: 'upstream line' }, paths: any },
  { name: 'request sent', scene: 'fresh', site: inside('request_sent'), paths: any },
  { name: 'response head', scene: 'fresh', site: inside('response_head'), paths: any },
  { name: 'half the response', scene: 'fresh', site: inside('response_data'), paths: any },
  { name: 'response complete', scene: 'fresh', site: inside('response_complete'), paths: any },
  { name: 'completion sent', scene: 'fresh', site: inside('statement_sent', 'settle'), paths: any },
  {
    name: 'completion acknowledged',
    scene: 'fresh',
    site: inside('statement_answered', 'settle'),
    paths: any,
  },
  { name: 'half the answer', scene: 'fresh', site: { kind: 'client line' }, paths: any },
  { name: 'answer sent', scene: 'fresh', site: inside('answer_sent'), paths: any },
  { name: 'renewal sent', scene: 'held', site: inside('statement_sent', 'renew_lease'), paths: any },
  {
    name: 'renewal acknowledged',
    scene: 'held',
    site: inside('statement_answered', 'renew_lease'),
    paths: any,
  },
  {
    name: 'sweep, between look and change',
    scene: 'overdue',
    site: inside('sweep_found'),
    paths: ['/plain', '/marked', '/mixed'],
  },
  { name: 'reap, between look and change', scene: 'expired', site: inside('reap_found'), paths: ['/brief'] },
  {
    name: 'take-over sent',
    scene: 'again',
    site: inside('statement_sent', 'take_over'),
    paths: ['/plain', '/brief', '/marked'],
  },
  {
    name: 'take-over acknowledged',
    scene: 'again',
    site: inside('statement_answered', 'take_over'),
    paths: ['/plain', '/brief', '/marked'],
  },
  { name: 'drain', scene: 'held', site: { kind: 'drain' }, paths: any },
];

/** The first four are tried at every point on one replica and on three; of the others some each time round. */
export const coreActions = ['kill', 'stop', 'cut postgres', 'cut upstream'] as const;
export const moreActions = [
  'end backends',
  'client leaves',
  'slow lines',
  'crash postgres',
  'freeze standby',
] as const;
export type Action = (typeof coreActions)[number] | (typeof moreActions)[number];
