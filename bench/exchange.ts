/** What travels: a charge of about 200 bytes, and its answer of about 300. */
export const path = '/v1/charges';

/** The same, but the upstream takes its time, so that there are duplicates of what still runs. */
export const slowPath = '/v1/slow-charges';
export const slowMs = 5;

/** What is read by GET: the same bytes as the answer above. */
export const chargePath = '/v1/charges/ch_3MmlLrLkdIwHu7ix0snN0B15';

export const requestBody = JSON.stringify({
  amount: 12_999,
  currency: 'eur',
  customer: 'cus_NffrFeUfNV2Hib',
  description: 'Order 2741, two items',
  capture: true,
  metadata: { order: '2741', cart: 'c_81f2a9', channel: 'web' },
  receipt_email: 'someone@example.com',
});

export const answerBody = JSON.stringify({
  id: 'ch_3MmlLrLkdIwHu7ix0snN0B15',
  object: 'charge',
  amount: 12_999,
  amount_captured: 12_999,
  currency: 'eur',
  customer: 'cus_NffrFeUfNV2Hib',
  description: 'Order 2741, two items',
  metadata: { order: '2741', cart: 'c_81f2a9', channel: 'web' },
  created: 1_763_258_400,
  paid: true,
  receipt_email: 'someone@example.com',
  status: 'succeeded',
});

export const answerHeaders = {
  'Content-Type': 'application/json; charset=utf-8',
  Location: chargePath,
  'Cache-Control': 'no-store',
};
