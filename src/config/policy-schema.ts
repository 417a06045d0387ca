import * as z from 'zod';
import { guardableMethods } from '../core/policy.ts';
import { presetNames } from '../core/settle.ts';
import { nearest } from './did-you-mean.ts';
import {
  countedHeaderField,
  durationField,
  forEveryMap,
  headerField,
  originField,
  pageOriginField,
  patternField,
  pointerField,
  sizeField,
} from './scalars.ts';

const outcomes = ['store', 'release', 'unknown'] as const;

const outcomeTable = z
  .strictObject({ preset: z.enum(presetNames).describe('The table that the other statuses follow.') })
  .catchall(z.enum(outcomes))
  .superRefine((table, context) => {
    for (const key of Object.keys(table)) {
      if (key === 'preset' || /^[2-5]\d\d$/.test(key)) continue;
      if (nearest(key, ['preset']) !== null) {
        context.addIssue({ code: 'unrecognized_keys', keys: [key] });
        continue;
      }
      const message = 'is no status; write preset or a status from 200 to 599';
      context.addIssue({ code: 'custom', path: [key], message });
    }
  }, forEveryMap);

/** Every policy field, without default: the defaults give one, a route may leave it out. */
const fields = {
  mode: z
    .enum(['enforce', 'off'])
    .describe('enforce: keys are reserved and answers kept. off: everything passes through.'),
  methods: z
    .array(z.enum(guardableMethods))
    .min(1, { error: 'is empty; write at least one method, or mode: off' })
    .describe('Methods that are guarded. A method that a route leaves out passes through on its path.'),
  requireKey: z
    .boolean()
    .describe('true: a guarded request without key gets 400. false: it passes through, not guarded.'),
  body: z
    .enum(['canonical', 'raw'])
    .describe('canonical: reordered JSON members or form fields are the same request. raw: byte for byte.'),
  ignore: z
    .array(pointerField())
    .describe(
      'JSON pointers of members that may differ between retries, for instance a time of sending. In a form /a/b is the field a[b].',
    ),
  headers: z
    .array(countedHeaderField())
    .describe(
      'Headers that must be the same, for instance one that names an account. Stripe-Account and Stripe-Context always are in the stripe dialect.',
    )
    .meta({ examples: [['X-Account']] }),
  wait: durationField('0s', '10m').describe(
    'How long a duplicate waits for the answer of the request in flight. 0s: it is told so at once.',
  ),
  answer: z
    .literal([409, 202, 503])
    .describe(
      'What a duplicate gets when that wait is over. 202: for clients that poll. 503: for those that retry a 503 and never a 409.',
    ),
  outcomes: z
    .union([z.enum(presetNames), outcomeTable])
    .describe(
      'What each upstream status means: store (final answer), release (a retry may run) or unknown. A preset, or a preset with overrides by status.',
    )
    .meta({ examples: ['payments', { preset: 'payments', 409: 'release' }] }),
  retention: durationField('1s', '3650d').describe('How long an answer is kept for replay, at least.'),
  maxRequestBody: sizeField('0b', '100mb').describe(
    'A larger guarded request gets 413. It is held in memory whole: nothing is reserved before its end was seen.',
  ),
  maxStoredBody: sizeField('0b', '100mb').describe(
    'A larger answer is passed on and not kept. If its outcome is `store`, retries get 409 and never run; else it is settled after its last byte.',
  ),
  replayStatus: z
    .literal(['original', 200])
    .describe('200: a stored 201 replays as 200; no other status changes.'),
  forwardKey: z
    .union([
      z.enum(['keep', 'strip']),
      z.strictObject({
        rename: headerField('X-Original-Key').describe('The header that carries the key instead.'),
      }),
    ])
    .describe(
      'What the upstream gets of the key: keep, strip, or { rename: Header }. Go re-sends a POST that carries one.',
    )
    .meta({ examples: ['strip', { rename: 'X-Original-Key' }] }),
  dispatchMark: z
    .boolean()
    .describe(
      'true: one more commit just before sending. A crash before it frees the key; without it, it would be unknown.',
    ),
  dialect: z
    .enum(['ietf', 'stripe'])
    .describe('Shape of our own errors: RFC 9457 problems, or as Stripe answers.'),
  origins: z
    .array(pageOriginField())
    .describe(
      "Origins whose pages may read our own errors, and a replay of an answer that the upstream granted to another origin. '*': any other, without credentials.",
    )
    .meta({ examples: [['https://shop.example']] }),
};

const fingerprintText = 'What makes two requests the same.';
const corsText =
  'Browsers. The upstream answers preflights and says who may read its answers; this is about what Oncegate says itself.';
const inFlightText = 'A duplicate while the first is still running.';

export const defaultsSchema = z.strictObject({
  mode: fields.mode.prefault('enforce'),
  methods: fields.methods.prefault(['POST', 'PATCH']),
  requireKey: fields.requireKey.prefault(true),
  fingerprint: z
    .strictObject({
      body: fields.body.prefault('canonical'),
      ignore: fields.ignore.prefault([]),
      headers: fields.headers.prefault([]),
    })
    .prefault({})
    .describe(fingerprintText),
  inFlight: z
    .strictObject({ wait: fields.wait.prefault('10s'), answer: fields.answer.prefault(409) })
    .prefault({})
    .describe(inFlightText),
  outcomes: fields.outcomes.prefault('standard'),
  retention: fields.retention.prefault('24h'),
  maxRequestBody: fields.maxRequestBody.prefault('1mb'),
  maxStoredBody: fields.maxStoredBody.prefault('1mb'),
  replayStatus: fields.replayStatus.prefault('original'),
  forwardKey: fields.forwardKey.prefault('keep'),
  dispatchMark: fields.dispatchMark.prefault(false),
  dialect: fields.dialect.prefault('ietf'),
  cors: z
    .strictObject({ origins: fields.origins.prefault([]) })
    .prefault({})
    .describe(corsText),
});

const upstreamFields = {
  url: originField()
    .describe('Origin of the service: scheme, host, port. Paths are forwarded unchanged.')
    .meta({ examples: ['http://127.0.0.1:3000'] }),
  timeout: durationField('1ms', '24h').describe(
    'From queueing a request to the last byte of its answer, without the time for which a slow client holds it up; then the outcome is unknown. What has queued for half of it is not sent.',
  ),
  connections: z.int().min(1).max(65_535).describe('Connections to this upstream, at most.'),
  host: z.enum(['preserve', 'upstream']).describe("Host header: the client's own, or the upstream's name."),
};

export const upstreamSchema = z.strictObject({
  url: upstreamFields.url.exactOptional(),
  timeout: upstreamFields.timeout.prefault('30s'),
  connections: upstreamFields.connections.prefault(128),
  host: upstreamFields.host.prefault('preserve'),
});

export const routeSchema = z.strictObject({
  path: patternField()
    .describe(
      'An exact path; * for one whole segment; a last /* for the path before it and everything below. The most specific route wins.',
    )
    .meta({ examples: ['/v1/charges'] }),
  mode: fields.mode.exactOptional(),
  methods: fields.methods.exactOptional(),
  requireKey: fields.requireKey.exactOptional(),
  fingerprint: z
    .strictObject({
      body: fields.body.exactOptional(),
      ignore: fields.ignore.exactOptional(),
      headers: fields.headers.exactOptional(),
    })
    .exactOptional()
    .describe(fingerprintText),
  inFlight: z
    .strictObject({ wait: fields.wait.exactOptional(), answer: fields.answer.exactOptional() })
    .exactOptional()
    .describe(inFlightText),
  outcomes: fields.outcomes.exactOptional(),
  retention: fields.retention.exactOptional(),
  maxRequestBody: fields.maxRequestBody.exactOptional(),
  maxStoredBody: fields.maxStoredBody.exactOptional(),
  replayStatus: fields.replayStatus.exactOptional(),
  forwardKey: fields.forwardKey.exactOptional(),
  dispatchMark: fields.dispatchMark.exactOptional(),
  dialect: fields.dialect.exactOptional(),
  cors: z.strictObject({ origins: fields.origins.exactOptional() }).exactOptional().describe(corsText),
  upstream: z
    .strictObject({
      url: upstreamFields.url.exactOptional(),
      timeout: upstreamFields.timeout.exactOptional(),
      connections: upstreamFields.connections.exactOptional(),
      host: upstreamFields.host.exactOptional(),
    })
    .exactOptional()
    .describe('Another upstream for this route; fields left out are those of the main one.'),
});
