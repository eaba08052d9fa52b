"""Definitions as texts: what is written is read back, and mistakes are told with their lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.datasources.custom import definition, documents, yaml_text
from factbook.datasources.custom.definition import SOURCE_TYPES, parse_source_definition
from factbook.errors import InvalidItemsError

_TEXTS = st.text(max_size=20) | st.sampled_from(["2026-01-01", "yes", "1_0", "- a", "a\n b\n", ""])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.slow
@given(st.dictionaries(_TEXTS, _VALUES, max_size=5))
def test_what_is_written_is_read_back(document: dict[str, object]) -> None:
    assert yaml_text.read_yaml(yaml_text.write_yaml(document)) == document


def test_what_a_source_begins_with_is_a_definition(subtests: pytest.Subtests) -> None:
    for type_ in SOURCE_TYPES:
        with subtests.test(type=type_):
            text = definition.write_starter("last-build", type_)
            document = yaml_text.read_yaml(text)
            assert parse_source_definition(document).type == type_
            assert yaml_text.read_yaml(yaml_text.write_yaml(document)) == document


def test_short_parts_stand_in_a_line_and_texts_of_several_lines_as_such() -> None:
    text = yaml_text.write_yaml({"filter": [{"kind": "api"}], "about": "one\ntwo\n", "empty": {}})
    assert text == "filter:\n- {kind: api}\nabout: |\n  one\n  two\nempty: {}\n"


def test_a_text_that_is_no_document_is_told_where_it_is_wrong(subtests: pytest.Subtests) -> None:
    cases = [
        ("a: 1\nb: c: d", "line 2", "mapping values are not allowed in this context"),
        ("a: 1\nb: {c: 1, c: 2}", "line 2", 'the key "c" is there twice'),
        ("a: *b", "", "has an alias, which is not read"),
        ("a: &b 1\nc: *b", "", "has an alias, which is not read"),
        ("a: " + "[" * 200, "", "is nested more than 100 deep"),
        ("[]", "", "has to be a mapping that begins like id: builds"),
        ("x" * (yaml_text.LONGEST_YAML + 1), "", "has more than 256 KiB"),
        ("? [1]\n: 2", "line 1", "found unhashable key"),
    ]
    for text, path, message in cases:
        with subtests.test(text=text, path=path):
            with pytest.raises(InvalidItemsError) as caught:
                yaml_text.read_yaml(text)
            assert caught.value.details["problems"] == [{"path": path, "message": message}]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_documents_are_read_in_the_encoding_of_their_mark(encoding: str) -> None:
    cases: list[tuple[str, documents.Format, object]] = [
        ('{"title": "Zoë"}', "json", {"title": "Zoë"}),
        ("title: Zoë", "yaml", {"title": "Zoë"}),
        ("Zoë", "text", "Zoë"),
    ]
    for text, format_, expected in cases:
        assert documents.read_body(text.encode(encoding), format_) == expected


def test_dates_stay_texts_and_a_mark_at_the_beginning_is_none() -> None:
    assert yaml_text.read_yaml("\ufeffa: 2026-01-01\nb: 2026-01-01T00:00:00Z") == {
        "a": "2026-01-01",
        "b": "2026-01-01T00:00:00Z",
    }
