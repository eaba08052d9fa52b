"""ID tokens that are not believed: whoever made them, whatever they say."""

import hashlib
import hmac
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import RSAKey
from joserfc.jws import JWSRegistry

from factbook.clock import SECOND
from tests.web.openid_provider import (
    CLIENT,
    ISSUER,
    JANE,
    SECRET,
    OpenIDProvider,
    forged,
    half_hash,
    key_for,
    refusal,
    sign_in,
    signed,
)


@pytest.fixture
def provider() -> OpenIDProvider:
    return OpenIDProvider()


async def test_a_token_that_says_something_wrong_is_refused(subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any]] = [
        {"nonce": "another"},
        {"nonce": None},
        {"aud": "another"},
        {"aud": []},
        {"aud": None},
        {"aud": ["another"]},
        {"aud": ["another"], "azp": CLIENT},
        {"azp": "another"},
        {"iss": "https://evil.example.com"},
        {"iss": f"{ISSUER}/"},
        {"iss": None},
        {"sub": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "x" * 256},
        {"sub": "nul\x00"},
        {"exp": None},
        {"exp": "2100-01-01"},
        {"exp": True},
        {"exp": float("inf")},
        {"exp": float("nan")},
        {"iat": None},
        {"at_hash": "wrong"},
        {"at_hash": half_hash("another token", hashlib.sha256)},
        {"at_hash": {"a": 1}},
    ]
    for claims in cases:
        with subtests.test(claims=claims):
            provider = OpenIDProvider()
            provider.claims = claims
            message = await refusal(provider)
            assert message.startswith("The provider's ID token was refused: ")
            assert "evil" not in message


async def test_a_token_of_another_time_is_refused(subtests: pytest.Subtests) -> None:
    for claim, seconds in [("exp", -61), ("exp", -60), ("iat", 61), ("nbf", 61)]:
        with subtests.test(claim=claim, seconds=seconds):
            provider = OpenIDProvider()
            provider.claims[claim] = provider.time() // SECOND + seconds
            assert "ID token was refused" in await refusal(provider)


Claims = dict[str, Any]


def unsigned(header: Claims, claims: Claims) -> str:
    return forged({**header, "alg": "none"}, claims, lambda _: b"")


def unsigned_in_capitals(header: Claims, claims: Claims) -> str:
    return forged({**header, "alg": "NONE"}, claims, lambda _: b"")


def without_signature(header: Claims, claims: Claims) -> str:
    return forged(header, claims, lambda _: b"")


def with_a_shared_secret(secret: bytes, header: Claims, claims: Claims) -> str:
    return forged(
        {**header, "alg": "HS256"}, claims, lambda data: hmac.digest(secret, data, "sha256")
    )


def with_the_public_key_as_secret(header: Claims, claims: Claims) -> str:
    key = key_for("RS256")
    assert isinstance(key, RSAKey)
    return with_a_shared_secret(key.as_pem(private=False), header, claims)


def with_the_client_secret(header: Claims, claims: Claims) -> str:
    return with_a_shared_secret(SECRET.encode(), header, claims)


def by_another_key(header: Claims, claims: Claims) -> str:
    return signed(header, claims, key_for("RS256", 9))


def by_a_key_that_it_brings(header: Claims, claims: Claims) -> str:
    own = key_for("RS256", 9)
    brought = {"jwk": {"kty": "RSA", "n": "AQAB", "e": "AQAB"}, "kid": own.kid}
    return signed({**header, **brought}, claims, own)


def by_an_algorithm_that_was_not_announced(header: Claims, claims: Claims) -> str:
    return signed({**header, "alg": "PS256"}, claims, key_for("RS256"))


def with_other_claims(header: Claims, claims: Claims) -> str:
    right = signed(header, claims, key_for("RS256")).split(".")
    other = forged(header, {**claims, "sub": "somebody-else"}, lambda _: b"").split(".")
    return ".".join([right[0], other[1], right[2]])


def with_claims_too_deep(header: Claims, claims: Claims) -> str:
    registry = JWSRegistry(algorithms=["RS256"])
    payload = "[" * 50_000
    return jws.serialize_compact(header, payload, key_for("RS256"), registry=registry)


def with_a_list_as_algorithm(header: Claims, claims: Claims) -> str:
    return forged({**header, "alg": ["RS256"]}, claims, lambda _: b"x")


FORGERIES = [
    unsigned,
    unsigned_in_capitals,
    without_signature,
    with_the_public_key_as_secret,
    with_the_client_secret,
    by_another_key,
    by_a_key_that_it_brings,
    by_an_algorithm_that_was_not_announced,
    with_other_claims,
    with_claims_too_deep,
    with_a_list_as_algorithm,
]


async def test_a_token_that_the_provider_did_not_sign_is_refused(subtests: pytest.Subtests) -> None:
    for forge in FORGERIES:
        with subtests.test(forge.__name__):
            provider = OpenIDProvider()
            provider.algorithm, provider.keys, provider.forge = "RS256", [key_for("RS256")], forge
            told = await refusal(provider)
            assert "The provider's ID token" in told
            assert "NONE" not in told


async def test_a_provider_that_announces_no_good_algorithm_lets_nobody_in(
    subtests: pytest.Subtests,
) -> None:
    cases: list[list[str]] = [[], ["none"], ["HS256"], ["none", "HS256", "RSA-OAEP"]]
    for algorithms in cases:
        with subtests.test(algorithms=algorithms):
            provider = OpenIDProvider()
            provider.algorithm, provider.keys = "RS256", [key_for("RS256")]
            provider.document["id_token_signing_alg_values_supported"] = algorithms
            assert "ID token was refused" in await refusal(provider)
            for forge in (unsigned, with_the_public_key_as_secret, with_the_client_secret):
                provider.forge = forge
                assert "ID token was refused" in await refusal(provider)


async def test_a_token_with_an_extension_that_has_to_be_understood_is_refused(
    provider: OpenIDProvider,
) -> None:
    key = key_for("RS256")
    provider.algorithm, provider.keys = "RS256", [key]
    provider.forge = lambda header, claims: forged(
        header, claims, lambda data: JWSRegistry.algorithms["RS256"].sign(data, key)
    )
    provider.header["extension"] = 1
    assert await sign_in(provider) == JANE
    provider.header["crit"] = ["extension"]
    assert "ID token was refused" in await refusal(provider)
