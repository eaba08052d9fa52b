"""What is not believed of an answer, and providers that fail."""

from typing import Any

import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response

from factbook.auth.oidc.identity import Attempt, Identity
from factbook.auth.oidc.provider import MOST_BYTES
from factbook.errors import SignInError
from tests.web.openid_provider import (
    DISCOVERY,
    ISSUER,
    JANE,
    REDIRECT,
    OpenIDProvider,
    at,
    refusal,
    sign_in,
)


@pytest.fixture
def provider() -> OpenIDProvider:
    return OpenIDProvider()


# Answers that are not believed


async def test_an_answer_to_another_browser_is_refused(subtests: pytest.Subtests) -> None:
    cases: list[str | None] = [None, "", "another", "ünicode", "\udcff"]
    for state in cases:
        with subtests.test(state=state):
            provider = OpenIDProvider()
            assert "not started in this browser" in await refusal(provider, state=state)
            assert provider.asked["/token"] == 0


async def test_an_answer_of_another_provider_is_refused(subtests: pytest.Subtests) -> None:
    cases: list[str | None] = [None, "", "https://evil.example.com", f"{ISSUER}/"]
    for issuer in cases:
        with subtests.test(issuer=issuer):
            provider = OpenIDProvider()
            assert "another provider" in await refusal(provider, iss=issuer)
            assert provider.asked["/token"] == 0


async def test_a_provider_that_names_itself_in_no_answer_need_not(provider: OpenIDProvider) -> None:
    provider.document["authorization_response_iss_parameter_supported"] = False
    assert await sign_in(provider, iss=None) == JANE
    assert "another provider" in await refusal(provider, iss="https://evil.example.com")


async def test_an_error_is_told_by_its_code_and_nothing_that_anybody_can_write(
    subtests: pytest.Subtests,
) -> None:
    for error, message in [
        ("access_denied", "did not sign you in: access_denied."),
        ("<script>alert(1)</script>", "did not sign you in."),
        ("", "did not sign you in."),
    ]:
        with subtests.test(error=error):
            provider = OpenIDProvider()
            found = await refusal(provider, error=error, error_description="Call 555", code=None)
            assert found.endswith(message)


async def test_an_error_of_another_provider_is_not_told(provider: OpenIDProvider) -> None:
    told = await refusal(provider, error="access_denied", iss="https://evil.example.com")
    assert "another provider" in told


async def test_without_a_code_of_the_provider_nobody_signs_in(subtests: pytest.Subtests) -> None:
    cases: list[str | None] = [None, "", "made-up"]
    for code in cases:
        with subtests.test(code=code):
            provider = OpenIDProvider()
            assert await refusal(provider, code=code) == (
                "The provider did not take the code: invalid_grant."
                if code
                else "The provider's answer has no code."
            )


async def test_a_code_that_was_begun_elsewhere_is_worth_nothing(provider: OpenIDProvider) -> None:
    openid = at(provider)
    url, stolen = await openid.begin(REDIRECT)
    answer = provider.signed_in(url)
    _, own = await openid.begin(REDIRECT)
    attempt = Attempt(stolen.state, stolen.nonce, own.code_verifier, own.expires_at)
    with pytest.raises(SignInError, match="invalid_grant"):
        await openid.finish(attempt, answer, REDIRECT)


async def test_a_code_is_not_exchanged_for_another_page(provider: OpenIDProvider) -> None:
    openid = at(provider)
    url, attempt = await openid.begin(REDIRECT)
    with pytest.raises(SignInError, match="invalid_grant"):
        await openid.finish(attempt, provider.signed_in(url), f"{REDIRECT}/other")


async def test_a_wrong_secret_is_told_as_such(provider: OpenIDProvider) -> None:
    assert "invalid_client" in await refusal(provider, at(provider, client_secret="another"))


async def test_an_answer_without_a_whole_token_is_refused(subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any]] = [
        {"id_token": None},
        {"access_token": None},
        {"token_type": None},
        {"token_type": "DPoP"},
        {"id_token": 7},
        {"id_token": ""},
        {"id_token": "a.b"},
        {"id_token": "e30.e30.e30"},
        {"id_token": "bnVsbA.e30.e30"},
        {"id_token": "W10.e30.e30"},
        {"id_token": "ü.ü.ü"},
        {"id_token": "x" * 200_000},
    ]
    for tokens in cases:
        with subtests.test(tokens=tokens):
            provider = OpenIDProvider()
            provider.tokens = tokens
            assert "The provider's" in await refusal(provider)


# Providers that fail


async def test_a_document_of_another_issuer_is_refused(provider: OpenIDProvider) -> None:
    provider.document["issuer"] = "https://evil.example.com"
    assert "from another issuer" in await refusal(provider)


async def test_a_document_with_an_address_that_is_not_safe_is_refused(
    subtests: pytest.Subtests,
) -> None:
    for name in ["authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"]:
        for url in [
            "http://id.example.com/x",
            "https://\u00fc.example.com/",
            "/x",
            "https://u:p@id.example.com/x",
        ]:
            with subtests.test(name=name, url=url):
                provider = OpenIDProvider()
                provider.document[name] = url
                assert "address that is not https" in await refusal(provider)


async def test_a_document_that_lacks_something_is_refused(subtests: pytest.Subtests) -> None:
    for name in ["issuer", "authorization_endpoint", "token_endpoint", "jwks_uri"]:
        with subtests.test(name=name):
            provider = OpenIDProvider()
            provider.document[name] = ""
            assert "discovery document" in await refusal(provider)
            provider.document[name] = None
            provider.document["other"] = 1
            if name == "issuer":
                provider.document[name] = 7
            assert await refusal(provider) == "The provider's discovery document cannot be read."


async def test_a_broken_answer_lets_nobody_in(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Response, str]] = [
        (Response("oops", 500), "did not arrive: it answered 500"),
        (RedirectResponse("https://evil.example.com/", 302), "did not arrive: it answered 302"),
        (JSONResponse({"filling": "x" * MOST_BYTES}), f"is larger than {MOST_BYTES} bytes"),
        (Response("<html>"), "cannot be read"),
        (JSONResponse([]), "cannot be read"),
        (Response(b'{"keys": "\xff"}'), "cannot be read"),
        (Response("[" * 100_000), "cannot be read"),
    ]
    for path in [DISCOVERY, "/keys", "/token", "/me"]:
        for broken, message in cases:
            with subtests.test(path=path, message=message):
                provider = OpenIDProvider()
                openid = at(provider)
                provider.faults[path] = broken
                assert message in await refusal(provider, openid)
                provider.faults.clear()
                assert await sign_in(provider, openid) == JANE


async def test_a_way_to_prove_the_client_that_is_not_known_here_is_told(
    provider: OpenIDProvider,
) -> None:
    provider.document["token_endpoint_auth_methods_supported"] = ["private_key_jwt"]
    assert "supports no known way to send the client's secret" in await refusal(provider)


async def test_user_information_of_somebody_else_is_refused(provider: OpenIDProvider) -> None:
    for subject in ("somebody-else", 7, None):
        provider.user_info["sub"] = subject
        assert "about someone else" in await refusal(provider)


async def test_user_information_is_asked_for_only_when_something_is_missing(
    provider: OpenIDProvider,
) -> None:
    provider.claims |= {"name": "Jane", "email": "jane@example.org"}
    found = await sign_in(provider)
    assert (found.display_name, found.email) == ("Jane", "jane@example.org")
    assert provider.asked["/me"] == 0


async def test_what_is_signed_outweighs_the_user_information(provider: OpenIDProvider) -> None:
    provider.claims["name"] = "Signed"
    provider.user_info |= {"name": "Other", "preferred_username": "other"}
    found = await sign_in(provider)
    assert (found.name, found.display_name, found.email) == ("jane", "Signed", "jane@example.com")


async def test_a_provider_without_user_information_may_say_less(provider: OpenIDProvider) -> None:
    provider.document["userinfo_endpoint"] = None
    assert await sign_in(provider) == Identity(
        ISSUER, "subject-7", "jane", "jane", None, (), "jane"
    )
