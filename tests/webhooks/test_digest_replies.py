"""What receivers answer to a digest, and whether it arrived by that."""

import pytest

from factbook.outbound.outcomes import HostReply
from factbook.schemas.events import DigestForm
from factbook.webhooks import digests


def test_a_reply_with_an_error_in_it_is_a_failure_whatever_its_status(
    subtests: pytest.Subtests,
) -> None:
    cases: list[tuple[DigestForm, HostReply, str | None]] = [
        ("slack", HostReply(200, body=b"ok"), None),
        ("slack", HostReply(204), None),
        ("slack", HostReply(200, body=b"no_service"), "answered 200: no_service"),
        ("slack", HostReply(200, body=b"<html>\xff</html>"), "answered 200 without accepting it"),
        ("slack", HostReply(403, body=b"invalid_token"), "answered 403: invalid_token"),
        ("slack", HostReply(302), "answered 302"),
        ("slack", HostReply(0, failure="no connection"), "no connection"),
        ("teams", HostReply(202), None),
        ("teams", HostReply(200, body=b"1"), None),
        ("teams", HostReply(200, body=b'{"name": "run"}'), None),
        (
            "teams",
            HostReply(200, body=b"Webhook message delivery failed with error: HTTP error 429"),
            "answered 200 without accepting it",
        ),
        (
            "teams",
            HostReply(200, body=b'{"error": {"code": "TriggerInputSchemaMismatch"}}'),
            "answered 200: TriggerInputSchemaMismatch",
        ),
        ("teams", HostReply(401, body=b'{"error": {"code": 7}}'), "answered 401"),
        ("teams", HostReply(400, body=b'{"error": [' * 5_000), "answered 400"),
    ]
    for form, reply, told in cases:
        with subtests.test(form=form, reply=reply):
            assert digests.explain_refusal(reply, form, "https://example.com/") == told
