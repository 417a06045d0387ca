"""The same as clients.mjs, for SDKs in Python."""

import json
import sys
import threading
import time


def headers_of(ask):
    named = {"Idempotency-Key": ask["key"], "Stripe-Account": ask["tenant"], **(ask["headers"] or {})}
    return {name: value for name, value in named.items() if value}


def stalled():
    """A body that begins, and ends long after it was given up."""
    yield b"{"
    time.sleep(13)


def with_requests():
    import requests
    from urllib3.util import Retry

    def call(ask):
        # Its own lists leave POST out, and every status.
        statuses = [409, 500, 502, 503, 504]
        retries = Retry(
            total=ask["retries"], allowed_methods=None, status_forcelist=statuses, raise_on_status=False
        )
        headers = headers_of(ask)
        if not ask["anonymous"]:
            headers["Authorization"] = "Bearer t"
        more = {"json": {"amount": ask["amount"], "note": ask["note"]}} if ask["method"] == "POST" else {}
        if ask["isStalled"]:
            more = {"data": stalled()}
        with requests.Session() as session:
            session.trust_env = False
            session.mount("http://", requests.adapters.HTTPAdapter(max_retries=retries))
            session.proxies = {"http": ask["proxy"]} if ask["proxy"] else {}
            answer = session.request(
                ask["method"], ask["url"] + "/charges", headers=headers, timeout=30, **more
            )
            answer.raise_for_status()

    return call


def with_stripe():
    import stripe

    def call(ask):
        client = stripe.StripeClient(
            "sk_test_1", base_addresses={"api": ask["url"]}, max_network_retries=ask["retries"]
        )
        # It has no call without credentials; a gateway could empty the header as well.
        headers = {**(ask["headers"] or {}), **({"Authorization": ""} if ask["anonymous"] else {})}
        options = {"headers": headers}
        if ask["key"]:
            options["idempotency_key"] = ask["key"]
        if ask["tenant"]:
            options["stripe_account"] = ask["tenant"]
        charge = {"amount": ask["amount"], "currency": "eur", "source": "tok_visa", "description": ask["note"]}
        client.v1.charges.create(charge, options)

    return call


call = {"requests": with_requests, "stripe (Python)": with_stripe}[sys.argv[1]]()


def answer(ask):
    try:
        call(ask)
        end = {"threw": False}
    except Exception as error:
        body = getattr(getattr(error, "response", None), "text", None)
        end = {"threw": True, "said": str(error), "body": body}
    # One write: calls end at the same time.
    sys.stdout.write(json.dumps({"id": ask["id"], **end}) + "\n")
    sys.stdout.flush()


for line in sys.stdin:
    threading.Thread(target=answer, args=(json.loads(line),)).start()
