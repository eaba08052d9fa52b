"""Signatures of webhooks."""

import time
from base64 import b64decode

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from factbook.webhooks import sender

# The example of the Standard Webhooks specification.
SECRET = b64decode("plJ3nmyCDGBKInavdOK15jsl")
BODY = b'{"event_type":"ping","data":{"success":true}}'
SIGNATURE = "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="


def test_the_example_of_the_specification_is_signed_as_it_says() -> None:
    found = sender.sign_message(SECRET, "msg_loFOjxBNrRLzqYUf", 1_731_705_121, BODY)
    assert found == {
        "webhook-id": "msg_loFOjxBNrRLzqYUf",
        "webhook-timestamp": "1731705121",
        "webhook-signature": SIGNATURE,
    }


def test_secrets_differ_and_are_shown_in_the_form_of_the_specification() -> None:
    one, other = sender.generate_secret(), sender.generate_secret()
    assert one != other
    assert b64decode(sender.format_secret(one).removeprefix("whsec_")) == one
    assert 24 <= len(one) <= 64


def test_the_library_that_receivers_use_takes_what_is_signed_and_nothing_else() -> None:
    secret = sender.generate_secret()
    receiver = Webhook(sender.format_secret(secret))
    headers = sender.sign_message(secret, "msg_1", int(time.time()), BODY)
    assert receiver.verify(BODY, headers) == {"event_type": "ping", "data": {"success": True}}
    for changed in (
        headers | {"webhook-id": "msg_2"},
        headers | {"webhook-timestamp": str(int(headers["webhook-timestamp"]) + 1)},
        sender.sign_message(sender.generate_secret(), "msg_1", int(time.time()), BODY),
        sender.sign_message(secret, "msg_1", int(time.time()) - 3600, BODY),
    ):
        with pytest.raises(WebhookVerificationError):
            receiver.verify(BODY, changed)
