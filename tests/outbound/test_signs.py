"""What an answer means."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.facts.schema import REASONS
from factbook.outbound.outcomes import (
    MEANINGS,
    SIGNS,
    HostReply,
    Outcome,
    judge_graphql_error,
    judge_reply,
)
from tests.outbound.asking import Host, asking, json

SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes."


async def test_an_answer_ends_in_the_outcome_of_the_first_sign_that_fits(
    subtests: pytest.Subtests,
) -> None:
    cases: list[tuple[int, Any, dict[str, str], Outcome]] = [
        (200, {}, {}, Outcome.OK),
        (201, [], {}, Outcome.OK),
        (401, {"message": "Bad credentials"}, {}, Outcome.REFUSED),
        (402, {}, {}, Outcome.FEATURE_OFF),
        (403, {"message": "Resource not accessible by integration"}, {}, Outcome.DENIED),
        (403, {}, {"x-ratelimit-remaining": "12"}, Outcome.DENIED),
        (403, {}, {"x-ratelimit-remaining": "0"}, Outcome.RATE_LIMITED),
        (403, {}, {"ratelimit-remaining": "0"}, Outcome.RATE_LIMITED),
        (403, {}, {"retry-after": "60"}, Outcome.RATE_LIMITED),
        (403, {"message": SECONDARY}, {}, Outcome.RATE_LIMITED),
        (200, {"message": SECONDARY, "documentation_url": "…"}, {}, Outcome.RATE_LIMITED),
        (200, {"errors": [{"message": SECONDARY}], "data": None}, {}, Outcome.RATE_LIMITED),
        (200, {"errors": [{"type": "RATE_LIMITED"}]}, {}, Outcome.RATE_LIMITED),
        (200, {"data": {"r": None}, "errors": [{"type": "NOT_FOUND"}]}, {}, Outcome.OK),
        (200, {"data": {"r": 1}, "errors": [{"message": SECONDARY}]}, {}, Outcome.OK),
        (200, {"sha": "1", "message": "Explain the rate limit exceeded error"}, {}, Outcome.OK),
        (403, {"message": "Dependabot alerts are disabled."}, {}, Outcome.FEATURE_OFF),
        (403, {"message": "Upgrade to enable this feature."}, {}, Outcome.FEATURE_OFF),
        (410, {"message": "Issues are disabled for this repo"}, {}, Outcome.FEATURE_OFF),
        (404, {"message": "Not Found"}, {}, Outcome.NOT_FOUND),
        (410, {}, {}, Outcome.NOT_FOUND),
        (429, {}, {}, Outcome.RATE_LIMITED),
        (451, {}, {}, Outcome.TRANSIENT),
        (301, {}, {}, Outcome.TRANSIENT),
        (400, {}, {}, Outcome.TRANSIENT),
        (422, {"errors": ["Upgrade"]}, {}, Outcome.TRANSIENT),
        (500, {}, {}, Outcome.TRANSIENT),
        (502, None, {}, Outcome.TRANSIENT),
        (503, {}, {}, Outcome.TRANSIENT),
    ]
    for status, body, headers, expected in cases:
        with subtests.test(status=status, body=body, headers=headers):
            named = {name.replace("-", "_"): value for name, value in headers.items()}
            answer = await asking(Host(json(status, body, **named))).get("thing")
            assert answer.outcome is expected


SAML_HEADER = {"x-github-sso": "required; url=https://github.test/orgs/acme/sso?token=secret"}
ALLOW_LIST = (
    "Although you appear to have the correct authorization credentials, the `acme` organization "
    "has an IP allow list enabled, and your IP address is not permitted."
)


@pytest.mark.spec("collecting.refusals-name-their-cause")
async def test_a_refusal_names_its_cause_and_repeats_nothing_of_the_host(
    subtests: pytest.Subtests,
) -> None:
    cases: list[tuple[int, Any, dict[str, str], Outcome, str]] = [
        (403, {"message": "Resource protected"}, SAML_HEADER, Outcome.REFUSED, "single sign-on"),
        (403, {"message": ALLOW_LIST}, {}, Outcome.REFUSED, "IP allow list"),
        (403, {"message": "Sorry. Your account was suspended"}, {}, Outcome.REFUSED, "suspended"),
        (
            403,
            {"message": "This installation has been suspended"},
            {},
            Outcome.REFUSED,
            "suspended",
        ),
        (401, {"error_description": "Token is expired."}, {}, Outcome.REFUSED, "renew it"),
        (401, {"error_description": "Token was revoked."}, {}, Outcome.REFUSED, "renew it"),
        (401, {"message": "Bad credentials"}, {}, Outcome.REFUSED, "renew it"),
        (
            403,
            {"message": "Not accessible"},
            {"x-oauth-scopes": "gist, public_repo", "x-accepted-oauth-scopes": "repo, admin:org"},
            Outcome.DENIED,
            "lacks a scope, one of: repo, admin:org",
        ),
        (403, {"error": "insufficient_scope", "scope": "api"}, {}, Outcome.DENIED, "lacks a scope"),
        (451, {"message": "Repository access blocked"}, {}, Outcome.TRANSIENT, "legal reasons"),
    ]
    for status, body, headers, outcome, sentence in cases:
        with subtests.test(status=status, body=body, headers=headers, outcome=outcome):
            named = {name.replace("-", "_"): value for name, value in headers.items()}
            answer = await asking(Host(json(status, body, **named))).get("thing")
            assert answer.outcome is outcome
            assert sentence in answer.detail
            assert not {"secret", "acme"} & set(answer.detail.split())


async def test_a_scope_that_the_token_has_is_not_called_missing() -> None:
    headers = {"x_oauth_scopes": "repo", "x_accepted_oauth_scopes": "repo, admin:org"}
    answer = await asking(Host(json(403, {"message": "No"}, **headers))).get("thing")
    assert (answer.outcome, "scope" in answer.detail) == (Outcome.DENIED, False)


def test_an_error_of_graphql_has_an_outcome_too(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], Outcome]] = [
        ({"type": "FORBIDDEN"}, Outcome.DENIED),
        ({"type": "FORBIDDEN", "extensions": {"saml_failure": True}}, Outcome.REFUSED),
        ({"type": "FORBIDDEN", "message": ALLOW_LIST}, Outcome.REFUSED),
        ({"type": "NOT_FOUND"}, Outcome.NOT_FOUND),
        ({"type": "RATE_LIMITED"}, Outcome.RATE_LIMITED),
        ({"extensions": {"code": "forbidden"}}, Outcome.DENIED),
        ({"message": "Something went wrong"}, Outcome.TRANSIENT),
        ({"type": 7, "extensions": []}, Outcome.TRANSIENT),
    ]
    for error, expected in cases:
        with subtests.test(error=error):
            assert judge_graphql_error(error).outcome is expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["message", "errors", "data", "type", "extensions", "code", "x"]), inner
        )
    ),
    max_leaves=10,
)


@pytest.mark.slow
@given(st.integers(0, 999), JSON)
def test_every_answer_has_an_outcome(status: int, data: Any) -> None:
    outcome = judge_reply(HostReply(status), data).outcome
    assert outcome is Outcome.OK or MEANINGS[outcome].reason in REASONS


def test_the_table_ends_with_a_row_that_always_fits_and_every_row_can_be_shown() -> None:
    assert [sign.status for sign in SIGNS][-1] == "any other"
    assert all(sign.status and sign.outcome for sign in SIGNS)
    assert {sign.outcome for sign in SIGNS} == {
        Outcome.OK,
        Outcome.REFUSED,
        Outcome.DENIED,
        Outcome.FEATURE_OFF,
        Outcome.NOT_FOUND,
        Outcome.RATE_LIMITED,
        Outcome.TRANSIENT,
    }
