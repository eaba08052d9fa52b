"""A token's value: its form, its checksum, its hash, its lifetime."""

import re
import string
from collections import Counter

import pytest

from factbook.auth import encryption, tokens
from factbook.clock import DAY, HOUR, MINUTE
from factbook.errors import InputError

KEY = encryption.make_token_key("k" * 32, None)
BASE62 = set(string.digits + string.ascii_letters)


@pytest.mark.spec("token.form")
def test_a_value_is_a_prefix_40_random_characters_and_a_checksum() -> None:
    values = [tokens.generate_token() for _ in range(500)]
    assert all(re.fullmatch(r"fbk_[0-9A-Za-z]{40}[0-9A-Za-z]{6}", value) for value in values)
    assert len({value[4:44] for value in values}) == 500
    used = Counter("".join(value[4:44] for value in values))
    assert set(used) == BASE62
    assert max(used.values()) < 2 * min(used.values())
    assert all(tokens.is_well_formed(value) for value in values)


@pytest.mark.spec("token.form", "token.wrong-checksum-is-refused")
def test_a_changed_or_swapped_character_does_not_fit_the_checksum() -> None:
    value = tokens.generate_token()
    for place in range(4, len(value)):
        for other in "0Az":
            changed = value[:place] + other + value[place + 1 :]
            assert tokens.is_well_formed(changed) == (changed == value)
    for place in range(4, len(value) - 1):
        swapped = value[:place] + value[place + 1] + value[place] + value[place + 2 :]
        assert tokens.is_well_formed(swapped) == (swapped == value)


def test_what_is_longer_shorter_or_of_another_alphabet_has_not_the_shape(
    subtests: pytest.Subtests,
) -> None:
    for value in [
        "",
        "fbk_",
        "fbk_" + "a" * 45,
        "fbk_" + "a" * 47,
        "ghp_" + "a" * 46,
        "fbk_" + "é" * 46,
    ]:
        with subtests.test(value=value):
            assert not tokens.is_token_shaped(value)
            assert not tokens.is_well_formed(value)


@pytest.mark.spec("token.stored-as-keyed-hash")
def test_the_hash_depends_on_the_value_and_the_key_and_tells_neither() -> None:
    one, two = tokens.generate_token(), tokens.generate_token()
    digest = tokens.hash_token(one, KEY)
    assert digest == tokens.hash_token(one, KEY)
    assert digest != tokens.hash_token(two, KEY)
    assert digest != tokens.hash_token(one, encryption.make_token_key("K" * 32, None))
    assert re.fullmatch("[0-9a-f]{64}", digest)


@pytest.mark.spec("token.constant-time-comparison")
def test_values_that_almost_agree_have_hashes_that_do_not() -> None:
    # What the database compares is keyed hashes: how much of two agrees tells nothing of a value.
    value = tokens.generate_token()
    digests = [tokens.hash_token(value[:-1] + last, KEY) for last in sorted(BASE62)]
    agreeing = max(
        next((n for n, (a, b) in enumerate(zip(one, two, strict=True)) if a != b), 64)
        for one in digests
        for two in digests
        if one != two
    )
    assert agreeing < 10


@pytest.mark.spec("token.expiry-can-be-chosen", "token.expires-after-90-days")
def test_a_lifetime_is_a_number_of_days_hours_or_minutes(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, int | None]] = [
        ("90d", 90 * DAY),
        ("1d", DAY),
        ("12h", 12 * HOUR),
        ("30m", 30 * MINUTE),
        ("99999d", 99_999 * DAY),
        ("never", None),
        (tokens.DEFAULT_LIFETIME, 90 * DAY),
    ]
    for text, expected in cases:
        with subtests.test(text=text):
            assert tokens.convert_lifetime(text) == expected


def test_any_other_lifetime_is_refused_with_examples(subtests: pytest.Subtests) -> None:
    for text in [
        "",
        "90",
        "d",
        "0d",
        "-1d",
        "1.5h",
        "1w",
        "90D",
        " 90d",
        "90d\n",
        "100000d",
        "²d",
        "Never",
    ]:
        with (
            subtests.test(text=text),
            pytest.raises(InputError, match="write 90d, 12h, 30m or never"),
        ):
            tokens.convert_lifetime(text)
