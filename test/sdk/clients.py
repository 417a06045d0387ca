"""The same as clients.mjs, for SDKs in Python."""

import json
import sys


def headers_of(ask):
    named = {"Idempotency-Key": ask["key"], "Stripe-Account": ask["tenant"]}
    return {name: value for name, value in named.items() if value}


def with_requests():
    import requests

    def call(ask):
        body = {"amount": ask["amount"], "note": ask["note"]}
        answer = requests.post(ask["url"] + "/charges", json=body, headers=headers_of(ask), timeout=30)
        answer.raise_for_status()

    return call


def with_stripe():
    import stripe

    def call(ask):
        client = stripe.StripeClient("sk_test_1", base_addresses={"api": ask["url"]}, max_network_retries=0)
        options = {}
        if ask["key"]:
            options["idempotency_key"] = ask["key"]
        if ask["tenant"]:
            options["stripe_account"] = ask["tenant"]
        charge = {"amount": ask["amount"], "currency": "eur", "source": "tok_visa", "description": ask["note"]}
        client.v1.charges.create(charge, options)

    return call


call = {"requests": with_requests, "stripe (Python)": with_stripe}[sys.argv[1]]()
for line in sys.stdin:
    try:
        call(json.loads(line))
        end = {"threw": False}
    except Exception as error:
        body = getattr(getattr(error, "response", None), "text", None)
        end = {"threw": True, "said": str(error), "body": body}
    print(json.dumps(end), flush=True)
