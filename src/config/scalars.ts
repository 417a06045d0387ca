import * as z from 'zod';
import { foldName } from '../core/fold-name.ts';
import { isJsonPointer } from '../core/json-pointer.ts';
import { isMethodOverride } from '../core/method-override.ts';
import { hopByHop } from '../core/response.ts';
import { patternFault } from '../core/route-pattern.ts';
import { addressFault, parseAddress } from './address.ts';
import { duration } from './duration.ts';
import type { Measure } from './measure.ts';
import { size } from './size.ts';
import { originFault, pageOriginFault, storeUrlFault } from './urls.ts';

// The kinds of value in a config file. Each reads text, so that file, environment and flags speak alike, and each says
// what to write instead. Bounds are in the field's own spelling.

export const durationField = (min: string, max: string) => measured(duration, min, max);
export const sizeField = (min: string, max: string) => measured(size, min, max);

function measured(kind: Measure, min: string, max: string) {
  const [least, most] = [kind.parse(min), kind.parse(max)];
  return z
    .string({ error: (issue) => kind.fault(issue.input) })
    .regex(kind.pattern, { error: (issue) => kind.fault(issue.input) })
    .transform((text) => kind.parse(text))
    .refine((value) => value >= least, { error: `is ${kind.tooLittle}; write at least ${min}` })
    .refine((value) => value <= most, { error: `is ${kind.tooMuch}; write at most ${max}` });
}

export const addressField = () =>
  z.string({ error: (issue) => addressFault(issue.input) }).transform((text, context) => {
    const address = parseAddress(text);
    if (address !== null) return address;
    context.addIssue({ code: 'custom', message: addressFault(text) });
    return z.NEVER;
  });

/** For checks across members: they run also where another member is wrong, so that all faults are told at once. */
export const forEveryMap = {
  when: ({ value }: { value: unknown }) =>
    typeof value === 'object' && value !== null && !Array.isArray(value),
};

/** A text that `fault` finds nothing wrong with. */
function textWithout(fault: (text: string) => string | null) {
  return z.string().superRefine((text, context) => {
    const message = fault(text);
    if (message !== null) context.addIssue({ code: 'custom', message });
  });
}

export const originField = () => textWithout(originFault).transform((text) => new URL(text).origin);
export const pageOriginField = () => textWithout(pageOriginFault);
export const storeUrlField = () => textWithout(storeUrlFault);
export const patternField = () => textWithout(patternFault);
export const pointerField = () =>
  textWithout((text) =>
    text !== '' && isJsonPointer(text) ? null : 'is not a JSON pointer; write for instance /metadata/sentAt',
  );

/** About one connection, framing, credentials, or set by us: these name neither a key nor a tenant. */
const reservedHeaders = new Set([
  ...hopByHop,
  'accept-encoding',
  'content-length',
  'expect',
  'host',
  'x-request-id',
  'authorization',
  'cookie',
  'proxy-authorization',
  'set-cookie',
]);
const reservedPrefix = /^(oncegate-|forwarded$|x-forwarded-|idempotency-status$)/;

function headerFault(name: string, example: string): string | null {
  if (!/^[\w!#$%&'*+.^`|~-]+$/.test(name)) return `is not a header name; write for instance ${example}`;
  const folded = foldName(name);
  if (!reservedHeaders.has(folded) && !reservedPrefix.test(folded)) return null;
  return `${name} has another meaning; write a header of its own, as ${example}`;
}

/** A header's name, in lower case. */
export const headerField = (example: string) =>
  textWithout((text) => headerFault(text, example))
    .transform((text) => text.toLowerCase())
    .meta({ examples: [example] });

/** What is another one on each try, made by SDKs, tracing and proxies: a retry would get 422. */
const headersOfOneTry =
  /^(date|age|via|traceparent|tracestate|baggage|b3|x-b3-.*|sentry-trace|uber-trace-id|x-datadog-.*|x-amzn-trace-id|x-cloud-trace-context|x-amz-date|x-real-ip|cf-ray|cf-connecting-ip|true-client-ip|user-agent|x-stainless-.*|x-stripe-client-telemetry|x-envoy-.*|.*-retry-(count|attempt)|dpop|signature(-input)?)$/;

function countedHeaderFault(name: string): string | null {
  const folded = foldName(name);
  if (/^(if-.*|content-type|content-encoding)$/.test(folded) || isMethodOverride(folded))
    return `${name} always counts; remove it`;
  if (/^(authorization|cookie|proxy-authorization|x-api-key)$/.test(folded))
    return `${name} carries credentials, which a retry may send anew; write a header that names the account`;
  if (headersOfOneTry.test(folded))
    return `${name} is another one on each try, so a retry would get 422; remove it`;
  return headerFault(name, 'X-Account');
}

/** A header of `fingerprint.headers`, in lower case. */
export const countedHeaderField = () =>
  textWithout(countedHeaderFault).transform((text) => text.toLowerCase());

/** `header:Name` → `name`. Other sources come later, hence the prefix. */
export const keySourceField = () =>
  textWithout((text) =>
    text.startsWith('header:')
      ? headerFault(text.slice('header:'.length), 'header:Idempotency-Key')
      : `must name its kind; write header:${/^[\w-]+$/.test(text) ? text : 'Idempotency-Key'}`,
  ).transform((text) => text.slice('header:'.length).toLowerCase());
