"""Filters on values as callers write them: understood, or refused with the reason."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.datasources import fact_columns
from factbook.errors import InputError
from factbook.facts.schema import TYPES, Fact, FactType

texts = st.none() | st.text() | st.sampled_from(["true", "1", "-1e3", "2026-11-21T12:00:00Z"])
names = ("known", "reason", "value", "min", "below")
types: st.SearchStrategy[FactType] = st.sampled_from([*TYPES])


@pytest.mark.slow
@given(types, st.fixed_dictionaries(dict.fromkeys(names, texts)))
def test_a_filter_is_read_or_refused(type_: FactType, given: dict[str, str | None]) -> None:
    try:
        found = fact_columns.read_value_filter(Fact("x", type_), given)
    except InputError:
        return
    assert found.known in {None, True, False}
    assert (found.value is None) == (given["value"] is None)


@given(st.sampled_from([("float", 1.5), ("integer", -7), ("string", "a\u2028"), ("datetime", 0)]))
def test_a_place_comes_back_from_its_cursor(one: tuple[FactType, Any]) -> None:
    type_, value = one
    fact = Fact("x", type_)
    for place in ((True, value, "component:default/a"), (False, None, "")):
        assert fact_columns.place_of_cursor(fact, fact_columns.write_value_cursor(place)) == place
    assert fact_columns.write_value_cursor(None) is None


@given(types, st.text() | st.binary().map(lambda some: some.decode("latin-1")))
def test_any_other_cursor_is_refused_or_a_place(type_: FactType, text: str) -> None:
    try:
        found = fact_columns.place_of_cursor(Fact("x", type_), text)
    except InputError:
        return
    assert found is None or isinstance(found[2], str)


def test_a_place_of_another_fact_is_refused() -> None:
    cursor = fact_columns.write_value_cursor((True, "text", "component:default/a"))
    with pytest.raises(InputError, match="of this fact"):
        fact_columns.place_of_cursor(Fact("x", "integer"), cursor)
