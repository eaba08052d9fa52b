"""Signatures of webhooks."""

from base64 import b64decode

from factbook.webhooks import signatures

# The example of the Standard Webhooks specification.
SECRET = b64decode("plJ3nmyCDGBKInavdOK15jsl")
BODY = b'{"event_type":"ping","data":{"success":true}}'
SIGNATURE = "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="


def test_the_example_of_the_specification_is_signed_as_it_says() -> None:
    found = signatures.headers(SECRET, "msg_loFOjxBNrRLzqYUf", 1_731_705_121, BODY)
    assert found == {
        "webhook-id": "msg_loFOjxBNrRLzqYUf",
        "webhook-timestamp": "1731705121",
        "webhook-signature": SIGNATURE,
    }


def test_secrets_differ_and_are_shown_in_the_form_of_the_specification() -> None:
    one, other = signatures.secret(), signatures.secret()
    assert one != other
    assert b64decode(signatures.shown(one).removeprefix("whsec_")) == one
    assert 24 <= len(one) <= 64
