"""Types of facts: what each takes, and what becomes of a value of another type."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.facts.schema import TYPES, Fact, FactType, check_values

FITTING: dict[FactType, list[Any]] = {
    "integer": [0, -1, 2**70],
    "float": [0.5, -1e300, 3],
    "string": ["", "text", "naïve ☃"],
    "boolean": [True, False],
    "datetime": [
        "2026-11-21T06:00:00.000+00:00",
        "2026-11-21T06:00Z",
        "2026-11-21t06:00:00z",
        "2026-11-21T06:00:00.5-0330",
    ],
    "set": [[], ["a", "b"], [1, 2.5, "1"]],
    "object": [{}, [], {"a": [1, None, {"b": True}]}, [[]]],
}
FOREIGN: dict[FactType, list[Any]] = {
    "integer": [True, 1.5, "1", [], float("nan")],
    "float": [True, "0.5", float("nan"), float("inf"), {}],
    "string": [1, True, ["a"], b"bytes", "\ud800"],
    "boolean": [0, 1, "true"],
    "datetime": [
        "2026-11-32",
        "2026-11-21T06:00:00",
        "2026-13-01T00:00:00Z",
        "2026-11-21 06:00:00Z",
        "20261121T060000Z",
        "٢٠٢٦-11-21T06:00:00Z",
        1_793_253_600_000,
    ],
    "set": [["a", "a"], [1, 1.0], [True], [None], [[]], [float("nan")], {"a": 1}, ("a",), "ab"],
    "object": ["{}", 1, {1: 2}, {"a": float("inf")}, [{"a": object()}], ["\udfff"]],
}


def cases(table: dict[FactType, list[Any]]) -> list[tuple[FactType, Any]]:
    return [(type_, value) for type_, values in table.items() for value in values]


@pytest.mark.spec("facts.types-are-checked")
def test_a_value_of_the_type_is_stored_as_it_came(subtests: pytest.Subtests) -> None:
    for type_, value in cases(FITTING):
        with subtests.test(type=type_, value=value):
            stored, reasons = check_values([Fact("fact", type_)], {"fact": value})
            assert stored["fact"] is value
            assert reasons == {}


@pytest.mark.spec("facts.types-are-checked", "facts.wrong-type-is-no-value-with-a-reason")
def test_a_value_of_another_type_is_no_value_with_a_reason(subtests: pytest.Subtests) -> None:
    for type_, value in cases(FOREIGN):
        with subtests.test(type=type_, value=value):
            stored, reasons = check_values([Fact("fact", type_)], {"fact": value})
            assert stored == {}
            assert reasons["fact"].startswith(
                f"upstream-error: expected {TYPES[type_].words}, not "
            )


def test_another_spelling_of_a_value_is_stored_as_the_usual_one() -> None:
    facts = [Fact("whole", "integer"), Fact("large", "integer"), Fact("day", "datetime")]
    stored, reasons = check_values(facts, {"whole": 5.0, "large": -2e9, "day": "2026-11-29"})
    assert msgspec.json.encode(stored) == (
        b'{"whole":5,"large":-2000000000,"day":"2026-11-29T00:00:00Z"}'
    )
    assert reasons == {}


def test_a_reason_says_the_type_and_never_the_value() -> None:
    _, reasons = check_values([Fact("fact", "integer")], {"fact": "a secret gone astray"})
    assert reasons == {"fact": "upstream-error: expected an integer, not this string"}


def test_none_is_no_value() -> None:
    assert check_values([Fact("fact", "string")], {"fact": None}) == (
        {},
        {"fact": "not-applicable: no value was given"},
    )


def test_a_fact_that_nothing_was_said_about_has_neither_value_nor_reason() -> None:
    assert check_values([Fact("fact", "string")], {}) == ({}, {})


def test_an_unknown_fact_is_reported_and_not_stored() -> None:
    assert check_values([Fact("fact", "string")], {"fact": "a", "typo": "b"}) == (
        {"fact": "a"},
        {"typo": "upstream-error: the data source declares no such fact"},
    )


def test_stored_values_are_in_the_order_of_the_schema() -> None:
    facts = [Fact("b", "integer"), Fact("a", "integer")]
    assert list(check_values(facts, {"a": 1, "b": 2}).stored) == ["b", "a"]


@pytest.mark.spec("source.schema-metadata-key")
def test_a_descriptor_names_its_fact_and_says_what_is_known() -> None:
    assert Fact("time", "float", "Time to merge.", "hours").descriptor() == {
        "type": "float",
        "description": "Time to merge.",
        "metadata": {"key": "time"},
        "unit": "hours",
    }
    assert Fact("time", "float", title="Time to merge").descriptor()["title"] == "Time to merge"
    assert Fact("time", "float").descriptor() == {"type": "float", "metadata": {"key": "time"}}


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@pytest.mark.slow
@given(st.sampled_from(list(TYPES)), VALUES)
def test_every_value_is_either_stored_unchanged_or_given_a_reason(
    type_: FactType, value: Any
) -> None:
    stored, reasons = check_values([Fact("fact", type_)], {"fact": value})
    assert ("fact" in stored) is not ("fact" in reasons)
    found = stored.get("fact", value)
    # 5.0 is the whole number 5.
    is_whole = type_ == "integer" and type(value) is float and found == value
    assert found is value or is_whole


@pytest.mark.slow
@given(st.sampled_from(list(TYPES)), VALUES)
def test_what_is_stored_survives_the_way_through_json(type_: FactType, value: Any) -> None:
    stored, _ = check_values([Fact("fact", type_)], {"fact": value})
    assert msgspec.json.decode(msgspec.json.encode(stored)) == stored
