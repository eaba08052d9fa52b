"""References: what a text means, and the canonical form."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.catalog import ref as refs
from factbook.catalog.ref import EntityRef
from factbook.errors import InputError
from tests.soak import examples

PARTS = st.text(
    st.characters(categories=["L", "N", "P", "S", "Zs"], exclude_characters=":/"), min_size=1
).filter(lambda part: part.isprintable() and part == part.strip())


def test_a_text_means_one_reference_with_defaults_for_what_it_lacks() -> None:
    expected = {
        "component:default/payments": "component:default/payments",
        "Component:Default/Payments": "component:default/payments",
        "payments": "component:space/payments",
        "other/payments": "component:other/payments",
        "api:payments": "api:space/payments",
        " api : other / payments ": "api:other/payments",
        "resource:default/Master Account": "resource:default/master account",
        "other/a:b": "component:other/a:b",
        "api:a/b/c": "api:a/b/c",
    }
    assert {
        text: str(refs.parse_ref(text, kind="component", namespace="space")) for text in expected
    } == expected


def test_a_reference_with_an_empty_part_is_refused(subtests: pytest.Subtests) -> None:
    for text in ("", " ", ":", "/", "api:", "api:/x", "api:x/", "/x", ":x", "a: /x"):
        with subtests.test(text=text), pytest.raises(InputError, match="not of the form"):
            refs.parse_ref(text, kind="component")


def test_a_reference_without_a_kind_needs_a_default() -> None:
    with pytest.raises(InputError, match="lacks a kind"):
        refs.parse_ref("default/payments")


@pytest.mark.parametrize("text", ["api:a\0b", "a\nb:default/c", "api:a\x1fb/c", "api:a\u2028b"])
def test_a_reference_with_an_unprintable_character_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not of the form"):
        refs.parse_ref(text)


def test_a_reference_longer_than_any_entity_has_is_refused() -> None:
    longest = f"{'k' * 63}:{'n' * 63}/{'m' * 253}"
    assert str(refs.parse_ref(longest)) == longest
    for name in ("m" * 700, "m" + "\u0301\u0316" * 500_000):  # composing the second takes minutes
        with pytest.raises(InputError, match="longer than"):
            refs.parse_ref(f"component:default/{name}")


def test_composed_and_decomposed_text_mean_the_same_reference() -> None:
    decomposed = unicodedata.normalize("NFD", "Équipe Zürich")
    assert refs.parse_ref(f"group:{decomposed}") == refs.parse_ref("group:équipe zürich")


@pytest.mark.slow
@given(PARTS, PARTS, PARTS)
def test_the_canonical_form_means_itself(kind: str, namespace: str, name: str) -> None:
    text = str(EntityRef.of(kind, namespace, name))
    if len(text) <= 300:
        assert str(refs.parse_ref(text)) == text
        assert text == text.lower()


@examples(40)
@given(st.from_regex(r"[a-z0-9:/._ A-Z-]{1,20}", fullmatch=True))
def test_the_canonical_form_is_that_of_what_was_parsed(text: str) -> None:
    try:
        meant = str(refs.parse_ref(text, kind="component", namespace="space"))
    except InputError:
        with pytest.raises(InputError):
            refs.canonicalize_ref(text, kind="component", namespace="space")
    else:
        assert refs.canonicalize_ref(text, kind="component", namespace="space") == meant
