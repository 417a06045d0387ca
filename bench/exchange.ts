/** What travels: a charge of about 200 bytes, and its answer of about 300. */
export const path = '/v1/charges';

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
