"""Taking facts out of documents: what is found, what is not, and that nothing takes for ever."""

import itertools
import json
import time
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.datasources.custom import extraction
from factbook.datasources.custom.extraction import (
    LARGEST_RESULT,
    NO_SUCH_VALUE,
    TOO_SLOW,
    UNFIT_EXPRESSION,
    compile_expression,
    compile_pattern,
    extract_values,
)
from factbook.errors import InputError
from factbook.facts.schema import FactType
from factbook.outbound.outcomes import Missing, Outcome

DOCUMENT = {"a": {"b": 1, "none": None}, "list": [{"n": "x", "v": 3}, {"n": "y", "v": 4}]}


def test_an_expression_gives_a_value_or_nothing() -> None:
    expected: dict[str, Any] = {
        "a.b": 1,
        "list[?v > `3`].n | [0]": "y",
        "length(list)": 2,
        "sum(list[].v)": 7,
        "join(', ', list[].n)": "x, y",
        "a.none": NO_SUCH_VALUE,
        "nowhere": NO_SUCH_VALUE,
        "a.b == `1`": True,
    }
    assert {text: compile_expression(text).of(DOCUMENT) for text in expected} == expected


def test_texts_are_split_and_times_reckoned_with() -> None:
    document = {
        "tags": "a,b,,c",
        "built": "2026-11-29",
        "released": "2026-11-30T12:00:00+02:00",
        "epoch": 1_796_000_000,
        "measure": "1.0",
    }
    expected: dict[str, Any] = {
        "split(tags, ',')": ["a", "b", "", "c"],
        "split(tags, ';')": ["a,b,,c"],
        "to_epoch(built)": 1_795_910_400,
        "from_epoch(epoch)": "2026-11-30T00:53:20Z",
        "from_epoch(to_epoch(released))": "2026-11-30T10:00:00Z",
        "days_between(built, released) > `1`": True,
        "days_between(built, '2026-11-22')": -7,
        "add_days(built, `30`)": "2026-12-29T00:00:00Z",
        "add_days(released, `-0.5`)": "2026-11-29T22:00:00Z",
        "to_number(measure)": 1.0,
    }
    assert {text: compile_expression(text).of(document) for text in expected} == expected


def test_functions_refuse_what_is_no_time_and_what_has_no_separator(
    subtests: pytest.Subtests,
) -> None:
    for text in (
        "to_epoch('yesterday')",
        "to_epoch('2026-11-29T12:00:00')",
        "from_epoch(`1e300`)",
        "add_days('2026-11-29', `1e9`)",
        "days_between('2026-11-29')",
        "split('a', '')",
        "split(`1`, ',')",
    ):
        with subtests.test(text=text):
            assert compile_expression(text).of({}) == UNFIT_EXPRESSION


def test_parts_of_a_text_count_as_steps_and_copies() -> None:
    found, steps = compile_expression("split(@, ',')").measured("," * 400_000, 10_000_000)
    assert (len(found), steps > 400_000) == (400_001, True)
    assert compile_expression("split(@, ',')").measured("," * 400_000, 300_000)[0] == TOO_SLOW
    with pytest.raises(InputError, match="128 times as large"):
        compile_expression(
            "[split(a, 'x'), split(b, 'y')].{"
            + ", ".join(f"k{n}: split(@, ',')" for n in range(4))
            + "}"
        )


def test_an_expression_that_does_not_fit_says_nothing_of_the_document() -> None:
    found = compile_expression("sum(list[].n)").of(DOCUMENT)
    assert isinstance(found, Missing)
    assert found.outcome is Outcome.BAD_DEFINITION
    assert "x" not in found.detail.split()


def test_a_pattern_gives_what_the_type_of_the_fact_says(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, FactType, Any]] = [
        (r"version: (\S+)", "string", "1.4"),
        (r"port=\d+", "string", "port=80"),
        (r"port=(\d+)", "integer", 80),
        (r"ratio=(\S+)", "float", 0.5),
        (r"^port", "boolean", True),
        (r"nowhere", "boolean", False),
        (r"nowhere", "string", NO_SUCH_VALUE),
        (r"tag:(\w+)", "set", ["a", "b"]),
        (r"nowhere", "set", []),
        (r"version: (\S+)", "integer", 1.4),  # which the schema then refuses
    ]
    for text, type_, value in cases:
        with subtests.test(text=text, type=type_):
            document = "version: 1.4\nport=80 ratio=0.5 tag:a tag:b tag:a"
            assert compile_pattern(text, type_).of(document) == value


def test_a_pattern_reads_any_document_as_its_json() -> None:
    assert compile_pattern(r'"v":(\d)', "set").of(DOCUMENT) == ["3", "4"]


def test_what_is_no_extractor_is_refused_when_it_is_defined(subtests: pytest.Subtests) -> None:
    cases: list[tuple[Any, str, str]] = [
        (compile_expression, "(", "not a JMESPath"),
        (compile_expression, "a[", "not a JMESPath"),
        (compile_expression, "", "not a JMESPath"),
        (compile_expression, "a == `b`", "has to be JSON"),
        (compile_expression, 'a."\\ud800"', "a name that is no text"),
        (compile_expression, "&a", "& outside of"),
        (compile_expression, "[to_array(&a), b]", "& outside of"),
        (compile_expression, '"\\ud800"(', "a name that is no text"),
        (compile_expression, "steal(@)", "no function steal"),
        (compile_expression, "join(a.b, list)", "literal"),
        (compile_expression, "join('eleven long', list)", "literal text of 10 characters"),
        (compile_expression, "|".join(["[@, @]"] * 8), "256 times"),
        (compile_expression, "|".join(["{a: @, b: @}"] * 8), "256 times"),
        (compile_expression, "|".join(["to_string([@])"] * 8), "256 times"),
        (compile_expression, "map(&map(&[@,@,@,@,@,@,@,@,@,@,@], [@,@,@,@]), [@,@,@,@])", "times"),
        (compile_expression, "a." * 500 + "b", "longer than 1000"),
        (compile_expression, "!" * 900 + "a", "nested"),
        (lambda text: compile_pattern(text, "string"), "(", "not a regular expression"),
        (lambda text: compile_pattern(text, "string"), "a" * 1001, "longer than 1000"),
        (lambda text: compile_pattern(text, "object"), "a", "object"),
    ]
    for make, text, told in cases:
        with subtests.test(text=text), pytest.raises(InputError, match=told):
            make(text)


def test_back_quotes_inside_other_quotes_and_json_in_them_are_taken(
    subtests: pytest.Subtests,
) -> None:
    texts = ["'`no`'", '"`no`"', "a == `[1, {}]`", 'a == `"x\\`y"`', "a == ` 7 `", "`null`"]
    for text in texts:
        with subtests.test(text=text):
            assert compile_expression(text).text == text


@pytest.mark.slow
@pytest.mark.parametrize("text", ["(a|aa)+$", "(.*a){25}$", "(a*)*b", r"(\w+\s?)+!$"])
@pytest.mark.parametrize("type_", ["string", "set"])
def test_a_catastrophic_pattern_ends_with_its_bound(text: str, type_: FactType) -> None:
    """Without a bound it would take 2^5000 steps, and the runner would end the test."""
    found = compile_pattern(text, type_).of("a" * 5_000 + " ")
    assert found in (NO_SUCH_VALUE, []) or isinstance(found, Missing)


@pytest.mark.slow
def test_an_expression_that_takes_long_ends_with_its_bound() -> None:
    slow = compile_expression("length(" + "[*]|" * 120 + "[*])")
    found = slow.of([[]] * 300_000)
    assert found == Missing(Outcome.TRANSIENT, "the extraction took too long")


def test_an_expression_looks_at_the_clock_at_each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    document, deep = {"a": {"a": {"a": {"a": 1}}}}, compile_expression("a.a.a.a")
    assert deep.of(document) == 1
    seconds = itertools.count(0, extraction.EXPRESSION_SECONDS / 3)
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    assert deep.of(document) == Missing(Outcome.TRANSIENT, "the extraction took too long")


def test_what_is_too_large_or_too_deep_is_no_fact(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, Any]] = [
        ("@", "x" * (LARGEST_RESULT + 1)),
        ("[@, @]", ["x" * 1_000] * 600),
        ("@", [1] * LARGEST_RESULT),
        ("@", {"k" * 2_000: 1, "l" * (LARGEST_RESULT - 1_000): 1}),
        ("to_string([@, @, @])", ["x" * 400_000]),
        ("join('', [@, @, @])", "x" * 400_000),
        ("[[[[[@]]]]]", json.loads("[" * 96 + "]" * 96)),
        ("to_string(@)", json.loads("[" * 101 + "]" * 101)),
    ]
    for text, document in cases:
        with subtests.test(text=text, document=document):
            found = extract_values(
                {"large": compile_expression(text), "small": compile_expression("'a'")}, document
            )
            told = Missing(Outcome.TOO_LARGE, "what was extracted is too large for facts")
            assert found == {"large": told, "small": "a"}


def test_the_facts_of_one_entity_share_a_size() -> None:
    some = {name: compile_expression("@") for name in "abc"}
    found = extract_values(some, "x" * 400_000)
    assert [type(one) for one in found.values()] == [str, str, Missing]


def test_all_extractors_of_a_source_share_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes a quarter of it here, and those that come after it are not begun."""
    seconds = itertools.count(0, extraction.LONGEST_SECONDS / 4)
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    found = extract_values({f"fact{i}": compile_pattern("a+", "string") for i in range(200)}, "aab")
    late = Missing(Outcome.TRANSIENT, "the extraction took too long")
    assert list(found.values()) == ["aa"] * 3 + [late] * 197


@given(st.text(alphabet="ab.[]{}|@&`'\"()*?,:=<>! 01", max_size=40))
def test_every_expression_is_refused_or_finds_a_value_of_json(text: str) -> None:
    with suppress(InputError):
        found = compile_expression(text).of(DOCUMENT)
        assert isinstance(found, Missing) or json.loads(json.dumps(found)) == found
