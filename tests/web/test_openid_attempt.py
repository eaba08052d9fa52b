"""The attempt that a browser keeps while its person is at the provider."""

import base64

import pytest

from factbook.auth.oidc.identity import Attempt, open_attempt, seal_attempt
from tests.service import NOON

KEY = b"k" * 64
ATTEMPT = Attempt("state", "nonce", "verifier", NOON)


def test_what_is_sealed_is_opened_until_it_expires() -> None:
    sealed = seal_attempt(ATTEMPT, KEY)
    assert open_attempt(sealed, KEY, NOON - 1) == ATTEMPT
    assert open_attempt(sealed, KEY, NOON) is None


def test_another_key_opens_nothing() -> None:
    assert open_attempt(seal_attempt(ATTEMPT, KEY), b"l" * 64, NOON - 1) is None


def test_a_cookie_can_hold_it() -> None:
    assert seal_attempt(ATTEMPT, KEY).translate(dict.fromkeys(map(ord, "-_.="))).isalnum()


def test_not_one_character_can_be_changed() -> None:
    sealed = seal_attempt(ATTEMPT, KEY)
    for place, character in enumerate(sealed):
        other = "A" if character != "A" else "B"
        assert open_attempt(sealed[:place] + other + sealed[place + 1 :], KEY, NOON - 1) is None


def test_what_is_no_attempt_is_none(subtests: pytest.Subtests) -> None:
    for text in ["", ".", "a.b", "ünicode", "\udcff", "a" * 10_000]:
        with subtests.test(text=text):
            assert open_attempt(text, KEY, NOON - 1) is None


def test_a_signature_of_something_else_is_worth_nothing() -> None:
    sealed = seal_attempt(ATTEMPT, KEY)
    body, _, signature = sealed.partition(".")
    later = base64.urlsafe_b64encode(base64.urlsafe_b64decode(body).replace(b"state", b"other"))
    assert open_attempt(f"{later.decode()}.{signature}", KEY, NOON - 1) is None
