"""The manifest and the tests agree: nothing asked for is unshown, nothing shown is unasked."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import pytest

from .__main__ import table
from .marks import Mark, marks_in, marks_of_source
from .requirements import REQUIREMENTS, TOPICS, Requirement

ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-[a-z0-9]+)*)+")

SEED = (
    *("1", *(f"2.{number}" for number in range(1, 13)), "3", "4.1", "4.2", "4.3"),
    *(f"4.1 rule {number}" for number in range(1, 6)),
    *(f"4.3 rule {number}" for number in range(1, 6)),
    *("5", "6", "7", "8", "9"),
)
DECISIONS = (
    *(f"1.{number}" for number in range(1, 4)),
    *("2", *(f"2.{number}" for number in range(1, 9)), "3"),
    *(f"4.{number}" for number in range(1, 10)),
    *(f"5.{number}" for number in range(1, 9)),
    *(f"6.{number}" for number in range(1, 7)),
    "7",
)
SECTIONS = {
    *(f"seed §{section}" for section in SEED),
    *(f"decisions §{section}" for section in DECISIONS),
}


def sources(requirement: Requirement) -> list[str]:
    """The places a requirement comes from, one by one."""
    return requirement.source.split("; ")


def missing(requirements: Mapping[str, Requirement], marks: Iterable[Mark]) -> list[str]:
    """Ids that a test has to name and none does."""
    named = {mark.requirement_id for mark in marks}
    return [
        requirement_id
        for requirement_id, requirement in requirements.items()
        if requirement.later is None and requirement_id not in named
    ]


def unknown(requirements: Mapping[str, Requirement], marks: Iterable[Mark]) -> list[str]:
    """Marks whose id nobody asked for, or is not a literal string."""
    return [
        f"{mark.place} {mark.requirement_id or 'an id has to be a literal string'}"
        for mark in marks
        if mark.requirement_id not in requirements
    ]


def premature(requirements: Mapping[str, Requirement], marks: Iterable[Mark]) -> list[str]:
    """Marks of requirements that still say they come later."""
    later = {
        requirement_id
        for requirement_id, requirement in requirements.items()
        if requirement.later is not None
    }
    return [f"{mark.place} {mark.requirement_id}" for mark in marks if mark.requirement_id in later]


def lines(heading: str, found: Iterable[str]) -> str:
    """A failure message with one finding a line."""
    return "\n  ".join([heading, *found])


@pytest.mark.slow
def test_every_requirement_is_shown_by_a_test() -> None:
    found = missing(REQUIREMENTS, marks_in())
    assert not found, lines(f"{len(found)} requirements are named by no test:", found)


@pytest.mark.slow
def test_every_id_that_a_test_names_exists() -> None:
    found = unknown(REQUIREMENTS, marks_in())
    assert not found, lines("no such requirement:", found)


@pytest.mark.slow
def test_no_test_names_a_requirement_that_comes_later() -> None:
    found = premature(REQUIREMENTS, marks_in())
    assert not found, lines("shown already, so its `later` has to go:", found)


@pytest.mark.slow
def test_every_mark_is_on_a_test() -> None:
    found = [f"{mark.place} {mark.scope}" for mark in marks_in() if not mark.is_on_a_test]
    assert not found, lines("pytest ignores a mark on what is no test:", found)


def test_ids_are_dotted_kebab_names() -> None:
    found = [requirement_id for requirement_id in REQUIREMENTS if not ID.fullmatch(requirement_id)]
    assert not found, lines("not a dotted kebab name:", found)


def test_no_id_is_in_two_topics() -> None:
    found = repeated(requirement_id for topic in TOPICS.values() for requirement_id in topic)
    assert not found, lines("in more than one topic:", found)


def test_no_text_is_there_twice() -> None:
    found = repeated(requirement.text for requirement in REQUIREMENTS.values())
    assert not found, lines("the same text twice:", found)


def test_texts_are_sentences_of_one_line() -> None:
    found = [
        requirement_id
        for requirement_id, requirement in REQUIREMENTS.items()
        if not requirement.text.endswith(".") or "\n" in requirement.text
    ]
    assert not found, lines("not a sentence on one line:", found)


def test_every_source_is_a_section_of_the_mission() -> None:
    found = [
        f"{requirement_id}: {source}"
        for requirement_id, requirement in REQUIREMENTS.items()
        for source in sources(requirement)
        if source not in SECTIONS
    ]
    assert not found, lines("no such section:", found)


def test_every_section_of_the_mission_has_a_requirement() -> None:
    covered = {source for requirement in REQUIREMENTS.values() for source in sources(requirement)}
    found = sorted(SECTIONS - covered)
    assert not found, lines("sections without a requirement:", found)


def repeated(values: Iterable[str]) -> list[str]:
    """What occurs more than once."""
    return [value for value, count in Counter(values).items() if count > 1]


# The checks themselves, on a manifest and a module made up for them

MADE_UP = {
    "a.now": Requirement("seed §1", "Now."),
    "a.later": Requirement("seed §1", "Later.", later="comes later"),
}
MODULE = """
pytestmark = [pytest.mark.spec("a.module"), pytest.mark.anyio]

@pytest.mark.spec("a.function", "a.second")
async def test_function(): ...

@pytest.mark.spec("a.class")
class TestClass:
    @pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.spec("a.case"))])
    def test_method(self, x): ...

@mark.spec(SOMETHING)
def helper(): ...
"""


def test_a_requirement_without_a_test_is_found() -> None:
    assert missing(MADE_UP, []) == ["a.now"]
    assert missing(MADE_UP, [Mark("a.now", "tests/test_a.py", 1, "test_a")]) == []


def test_a_test_without_a_requirement_is_found() -> None:
    marks = [Mark("a.typo", "tests/test_a.py", 7, "test_a"), Mark(None, "tests/test_a.py", 9, "")]
    assert unknown(MADE_UP, marks) == [
        "tests/test_a.py:7 a.typo",
        "tests/test_a.py:9 an id has to be a literal string",
    ]


def test_a_test_of_what_comes_later_is_found() -> None:
    marks = [Mark("a.later", "tests/test_a.py", 3, "test_a")]
    assert premature(MADE_UP, marks) == ["tests/test_a.py:3 a.later"]


def test_marks_are_read_wherever_pytest_takes_them() -> None:
    marks = marks_of_source(MODULE, "tests/test_a.py")
    assert [(mark.requirement_id, mark.test) for mark in marks] == [
        ("a.module", "tests/test_a.py"),
        ("a.function", "tests/test_a.py::test_function"),
        ("a.second", "tests/test_a.py::test_function"),
        ("a.class", "tests/test_a.py::TestClass"),
        ("a.case", "tests/test_a.py::TestClass.test_method"),
        (None, "tests/test_a.py::helper"),
    ]


def test_a_mark_on_a_helper_shows_nothing() -> None:
    marks = marks_of_source(MODULE, "tests/test_a.py")
    assert [mark.scope for mark in marks if not mark.is_on_a_test] == ["helper"]


def test_the_table_names_the_tests_or_the_theme() -> None:
    printed = list(table({"a": MADE_UP}, {"a.now": ["tests/test_a.py::test_a"]}))
    assert printed == [
        "# a",
        "a.now    seed §1  tests/test_a.py::test_a",
        "a.later  seed §1  later: comes later",
        "",
        "2 requirements: 1 shown by tests, 1 later",
    ]
