"""Passwords: hashing, comparing, and which may be chosen."""

import argon2
import pytest

from factbook.auth import passwords
from factbook.errors import InputError

KIM = "user:default/kim.of.the.hills"
UNCOMMON = [
    "correct horse battery",
    "a password of this person",
    "dragon-83610275-4471",
    "8361-0275-4471",
    "Xk3!vpQz9#mL",
    "tr0ub4dor&3 stapler",
    "\U0001f40e\U0001f50b\u03bb\u00e9" * 2 + "abcde",
]
COMMON = [
    "password1234",
    "Password1234",
    "1234password",
    "P@ssw0rd1234",
    "p4$$w0rd!2024",
    "$unshine1234",
    "password 1234",
    "passwordpassword",
    "Password.Password1",
    "administrator",
    "Administrator1!",
    "qwerty123456",
    "qwertyuiop12",
    "QWERTYUIOPASDF",
    "1qaz2wsx3edc",
    "1q2w3e4r5t6y7u",
    "123456789012",
    "987654321098",
    "abcdefghijkl",
    "abcabcabcabc",
    "121212121212",
    "!!!!dragon!!!!",
    "iloveyou2026!",
    "welcome12345",
    "factbook1234",
    "Kim.of.the.Hills1",
    "\uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff441234",
]


@pytest.fixture(scope="module", autouse=True)
def light_passwords() -> None:
    """Override the light hasher of all other tests: here passwords are hashed as in the service."""


@pytest.mark.slow
def test_a_password_fits_its_hash_alone() -> None:
    stored = passwords.hash_password("correct horse battery")
    assert passwords.matches_password(stored, "correct horse battery")
    for other in ("correct horse batterz", "Correct horse battery", "", "\ud800", stored):
        assert not passwords.matches_password(stored, other), other


@pytest.mark.slow
def test_a_hash_is_argon2id_with_a_salt_of_its_own_and_does_not_tell_the_password() -> None:
    one, two = (passwords.hash_password("correct horse battery") for _ in range(2))
    assert one.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert one != two
    assert "correct" not in one


@pytest.mark.slow
def test_a_password_fits_however_its_characters_are_composed() -> None:
    assert passwords.matches_password(
        passwords.hash_password("gru\u0308ne Wiese 12"), "gr\u00fcne Wiese 12"
    )


@pytest.mark.slow
def test_no_password_fits_where_there_is_none() -> None:
    for password in ("correct horse battery", "", "\0" * 32):
        assert not passwords.matches_password(None, password)


@pytest.mark.slow
def test_looking_for_nobody_does_the_work_of_a_wrong_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Argon2's own parameters say how long it takes; each answer takes one comparison by them."""
    verify, compared = argon2.PasswordHasher.verify, list[argon2.Parameters]()

    def recorded(hasher: argon2.PasswordHasher, hash_: str | bytes, password: str | bytes) -> bool:
        assert isinstance(hash_, str)
        compared.append(argon2.extract_parameters(hash_))
        return verify(hasher, hash_, password)

    stored = passwords.hash_password("correct horse battery")
    monkeypatch.setattr(argon2.PasswordHasher, "verify", recorded)
    for hash_, password in (
        (stored, "wrong password"),
        (None, "wrong password"),
        (stored, "x" * 257),
    ):
        assert not passwords.matches_password(hash_, password)
    assert compared == [argon2.extract_parameters(stored)] * 3


def test_a_hash_of_weaker_parameters_still_fits_and_is_outdated() -> None:
    weak = argon2.PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
    stored = weak.hash("correct horse battery")
    assert passwords.matches_password(stored, "correct horse battery")
    assert passwords.needs_rehash(stored)
    assert not passwords.needs_rehash(passwords.hash_password("correct horse battery"))


def test_12_to_256_characters_are_a_password(subtests: pytest.Subtests) -> None:
    for password in ["twelve chars", "x" * 255 + "y", "äöüß äöüß äöüs", *UNCOMMON]:
        with subtests.test(password=password):
            passwords.check_password(password, KIM)


def test_what_is_easily_guessed_is_refused_in_a_sentence(subtests: pytest.Subtests) -> None:
    for password, sentence in [
        ("", "12 to 256 characters"),
        ("eleven char", "12 to 256 characters"),
        ("x" * 256 + "y", "12 to 256 characters"),
        ("Kim.of.the.Hills", "not be the name"),
        ("user:default/kim.of.the.hills", "not be the name"),
        ("x" * 12, "one character repeated"),
        (" " * 256, "one character repeated"),
        *((password, "too common") for password in COMMON),
    ]:
        with subtests.test(password=password), pytest.raises(InputError, match=sentence):
            passwords.check_password(password, KIM)
