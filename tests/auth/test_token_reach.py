"""What a narrowing has in it, and what one within another has."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.auth import tokens
from factbook.auth.tokens import DIMENSIONS, SETS, Narrowing
from factbook.errors import InputError, NotAllowedError

NAMES = st.text("ab", min_size=1, max_size=3)
PATTERNS = NAMES | st.text("ab", max_size=3).map("{}*".format)
NARROWINGS = st.dictionaries(
    st.sampled_from(DIMENSIONS), st.lists(PATTERNS, min_size=1, max_size=3)
).map(tokens.check_narrowing)


def allows(found: Narrowing | None, dimension: str, name: str) -> bool:
    return found is None or found.allows(dimension, name)


@pytest.mark.slow
@given(NARROWINGS, NARROWINGS, st.sampled_from(DIMENSIONS), NAMES)
def test_one_that_is_within_another_has_nothing_that_the_other_has_not(
    held: Narrowing | None, wish: Narrowing | None, dimension: str, name: str
) -> None:
    try:
        found = tokens.inherit_narrowing(wish, held)
    except NotAllowedError:
        assert held is not None
        return
    if allows(found, dimension, name):
        assert allows(held, dimension, name)
        assert allows(wish, dimension, name)


@pytest.mark.slow
@given(NARROWINGS)
def test_one_is_within_itself_and_is_stored_as_it_is(found: Narrowing | None) -> None:
    assert tokens.inherit_narrowing(found, found) == found
    text = tokens.encode_narrowing(found)
    assert (None if text is None else tokens.decode_narrowing(text)) == found


def test_what_no_name_can_be_is_refused(subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any]] = [
        {"sets": []},
        {"sets": [""]},
        {"sets": ["a\nb"]},
        {"sets": ["a\u200bb"]},
        {"sets": [str(number) for number in range(51)]},
        {"namespaces": ["Shop"]},
        {"namespaces": ["\u212aube"]},
        {"sources": ["a b"]},
        {"sources": ["*a"]},
        {"tools": ["get_entity"]},
        {"people": ["kim"]},
    ]
    for arguments in cases:
        with subtests.test(arguments=arguments), pytest.raises(InputError):
            tokens.check_narrowing(arguments)


def test_names_are_compared_character_by_character() -> None:
    found = Narrowing(sets=("shop", "caf\u00e9", "pay-*"))
    assert found.allows(SETS, "pay-eu")
    for other in (
        "Shop",
        "shop ",
        "shops",
        "cafe\u0301",
        "\uff53hop",
        "pay",
        "PAY-eu",
        "sh\u043ep",
    ):
        assert not found.allows(SETS, other), other
