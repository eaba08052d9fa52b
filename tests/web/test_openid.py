"""Signing in at an OpenID Connect provider, and the keys that it changes."""

import hashlib
from urllib.parse import parse_qs, urlsplit

import pytest
from starlette.responses import JSONResponse

from factbook.auth.oidc.client import connect_openid
from factbook.auth.oidc.provider import MOST_BYTES
from factbook.clock import HOUR, MINUTE, SECOND
from factbook.errors import SignInError
from factbook.settings import Settings
from tests.fakes.serving import served
from tests.web.openid_provider import (
    ACCESS_TOKEN,
    CLIENT,
    DISCOVERY,
    ISSUER,
    JANE,
    REDIRECT,
    SECRET,
    OpenIDProvider,
    at,
    half_hash,
    key_for,
    refusal,
    sign_in,
)


@pytest.fixture
def provider() -> OpenIDProvider:
    return OpenIDProvider()


# How it goes well


@pytest.mark.spec("people.openid-connect")
async def test_a_person_signs_in_with_what_the_provider_says(provider: OpenIDProvider) -> None:
    assert await sign_in(provider) == JANE


async def test_the_browser_is_sent_with_all_that_the_flow_needs(provider: OpenIDProvider) -> None:
    url, attempt = await at(provider).begin(REDIRECT)
    assert url.startswith(f"{ISSUER}/authorize?")
    query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
    challenge = query.pop("code_challenge")
    assert len(challenge) == 43
    assert attempt.code_verifier not in url
    assert query == {
        "tenant": "one",
        "response_type": "code",
        "client_id": CLIENT,
        "redirect_uri": REDIRECT,
        "scope": "openid profile email",
        "state": attempt.state,
        "nonce": attempt.nonce,
        "code_challenge_method": "S256",
    }


async def test_no_two_attempts_have_anything_in_common(provider: OpenIDProvider) -> None:
    openid = at(provider)
    (_, one), (_, other) = await openid.begin(REDIRECT), await openid.begin(REDIRECT)
    values = [one.state, one.nonce, one.code_verifier, other.state, other.nonce]
    assert len({*values, other.code_verifier}) == 6
    assert all(len(value) >= 43 for value in values)


async def test_an_attempt_shows_nothing_when_it_is_logged(provider: OpenIDProvider) -> None:
    _, attempt = await at(provider).begin(REDIRECT)
    assert repr(attempt) == "Attempt(…)"
    assert SECRET not in repr(at(provider).options)


async def test_the_secret_is_sent_as_the_provider_takes_it(subtests: pytest.Subtests) -> None:
    cases: list[list[str] | None] = [None, ["client_secret_basic"], ["client_secret_post"]]
    for methods in cases:
        with subtests.test(methods=methods):
            provider = OpenIDProvider()
            provider.document["token_endpoint_auth_methods_supported"] = methods
            assert await sign_in(provider) == JANE


async def test_a_client_without_a_secret_sends_only_its_name(provider: OpenIDProvider) -> None:
    provider.secret = None
    assert await sign_in(provider, at(provider, client_secret="")) == JANE


async def test_tokens_may_be_signed_in_any_of_the_usual_ways(subtests: pytest.Subtests) -> None:
    for algorithm in ["RS256", "RS512", "PS256", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]:
        with subtests.test(algorithm=algorithm):
            provider = OpenIDProvider()
            provider.algorithm, provider.keys = algorithm, [key_for(algorithm)]
            hashes = {"256": hashlib.sha256, "384": hashlib.sha384, "512": hashlib.sha512}
            hash_ = hashlib.sha512 if algorithm.startswith("Ed") else hashes[algorithm[2:]]
            provider.claims["at_hash"] = half_hash(ACCESS_TOKEN, hash_)
            assert await sign_in(provider) == JANE


async def test_a_token_for_several_services_has_to_name_this_one_twice(
    provider: OpenIDProvider,
) -> None:
    provider.claims["aud"] = ["other", CLIENT]
    assert "azp" in await refusal(provider)
    provider.claims["azp"] = CLIENT
    assert await sign_in(provider) == JANE


async def test_a_token_may_be_a_minute_off_the_clock_here(provider: OpenIDProvider) -> None:
    seconds = provider.time() // SECOND
    provider.claims |= {"iat": seconds + 59, "nbf": seconds + 59, "exp": seconds - 59}
    assert await sign_in(provider) == JANE


async def test_a_token_without_the_name_of_its_key_needs_a_set_of_one(
    provider: OpenIDProvider,
) -> None:
    provider.header["kid"] = None
    assert await sign_in(provider) == JANE
    provider.keys.append(key_for("ES256", 1))
    assert "not signed by any of its keys" in await refusal(provider)


async def test_keys_of_kinds_that_are_not_known_here_do_no_harm(provider: OpenIDProvider) -> None:
    key = provider.keys[0]
    right = dict(key.as_dict(private=False))
    provider.published = [
        {"kty": "future", "kid": key.kid},
        {"kty": "EC", "kid": key.kid, "crv": "P-256", "x": "!", "y": 7},
        {**right, "use": "enc"},
        {"kty": "oct", "kid": key.kid, "k": "c2VjcmV0"},
        {"kty": ["EC"], "kid": [key.kid]},
        {**right, "kty": ["EC"]},
        {**right, "crv": "future"},
        {},
        right,
    ]
    assert await sign_in(provider) == JANE


async def test_what_the_provider_says_of_itself_is_kept_for_an_hour(
    provider: OpenIDProvider,
) -> None:
    openid = at(provider)
    for _ in range(3):
        await sign_in(provider, openid)
    assert (provider.asked[DISCOVERY], provider.asked["/keys"]) == (1, 1)
    provider.time.advance(HOUR)
    await sign_in(provider, openid)
    assert (provider.asked[DISCOVERY], provider.asked["/keys"]) == (2, 2)


async def test_an_issuer_may_have_a_path_and_end_in_a_slash() -> None:
    provider = OpenIDProvider("https://id.example.com/realms/one/")
    assert (await sign_in(provider)).issuer == "https://id.example.com/realms/one/"


# Keys that change


async def test_a_new_key_is_asked_for_and_known_from_then_on(provider: OpenIDProvider) -> None:
    openid = at(provider)
    await sign_in(provider, openid)
    provider.keys = [key_for("ES256", 2)]
    assert await sign_in(provider, openid) == JANE
    assert await sign_in(provider, openid) == JANE
    assert provider.asked["/keys"] == 2


async def test_keys_are_asked_for_anew_at_most_once_a_minute(provider: OpenIDProvider) -> None:
    openid = at(provider)
    provider.published = []
    for _ in range(3):
        assert "not signed by any of its keys" in await refusal(provider, openid)
    assert provider.asked["/keys"] == 2
    provider.published = None
    assert "not signed by any of its keys" in await refusal(provider, openid)
    provider.time.advance(MINUTE)
    assert await sign_in(provider, openid) == JANE


async def test_a_new_key_under_the_old_name_is_asked_for_too(provider: OpenIDProvider) -> None:
    openid = at(provider)
    first = dict(provider.keys[0].as_dict(private=False))
    provider.header["kid"] = first["kid"]
    await sign_in(provider, openid)
    provider.keys = [key_for("ES256", 3)]
    provider.published = [dict(provider.keys[0].as_dict(private=False)) | {"kid": first["kid"]}]
    assert await sign_in(provider, openid) == JANE


# The network


@pytest.mark.spec("network.outgoing-guard-covers-openid-connect")
async def test_a_provider_at_an_inner_address_is_asked_only_when_a_setting_allows_it() -> None:
    provider = OpenIDProvider()
    with served(provider) as url:
        provider.issuer = url
        table = {"issuer": url, "client_id": CLIENT, "client_secret": SECRET}
        closed = connect_openid(Settings(openid=table), provider.time)
        assert closed is not None
        with pytest.raises(SignInError, match="outgoing_networks can allow it"):
            await closed.begin(REDIRECT)
        assert provider.asked.total() == 0
        settings = Settings(openid=table, outgoing_networks=["127.0.0.0/8"])
        openid = connect_openid(settings, provider.time)
        assert openid is not None
        assert (await sign_in(provider, openid)).subject == "subject-7"
        provider.faults["/keys"] = JSONResponse({"keys": [], "filling": "x" * MOST_BYTES})
        provider.time.advance(HOUR)
        assert "larger than" in await refusal(provider, openid)
        await closed.aclose()
        await openid.aclose()


async def test_no_endpoint_leads_around_the_guard() -> None:
    provider = OpenIDProvider()
    with served(provider) as url:
        provider.issuer = url
        provider.document["jwks_uri"] = "https://169.254.169.254/keys"
        table = {"issuer": url, "client_id": CLIENT, "client_secret": SECRET}
        settings = Settings(openid=table, outgoing_networks=["127.0.0.0/8"])
        openid = connect_openid(settings, provider.time)
        assert openid is not None
        assert "outgoing_networks can allow it" in await refusal(provider, openid)
        await openid.aclose()


async def test_a_provider_without_encryption_is_not_asked_through_a_proxy() -> None:
    settings = Settings(
        openid={"issuer": "http://127.0.0.1:9", "client_id": CLIENT},
        outgoing_networks=["127.0.0.0/8"],
        outgoing_proxy="http://127.0.0.1:9",
    )
    openid = connect_openid(settings)
    assert openid is not None
    with pytest.raises(SignInError, match="is not called through outgoing_proxy"):
        await openid.begin(REDIRECT)


def test_without_a_table_there_is_no_provider() -> None:
    assert connect_openid(Settings()) is None
