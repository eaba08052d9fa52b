"""Tests that a check carries: facts, perhaps an entity and a time, and the state that they give."""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from factbook.catalog.validation import deeper_than
from factbook.checks import state
from factbook.checks.rules import wanted_values
from factbook.errors import not_a_member, one_of
from factbook.facts.members import Report

_DEEPEST: Final = 20
# A test has no exemptions.
_WORDS: Final = tuple(word for word in state.WORDS if word != state.word(state.EXEMPT))
MEMBERS: Final = frozenset({"title", "facts", "reasons", "checks", "entity", "at", "expect"})


class CheckTest(Struct, frozen=True):
    """Facts and reasons by source, states of other checks, an entity and a time, all made up.

    `expect` is the state as a word. Facts were collected at the time of the test, `at`; None is the
    time at which the test runs.
    """

    expect: str
    title: str | None = None
    facts: Mapping[str, Mapping[str, Any]] = {}
    reasons: Mapping[str, Mapping[str, str]] = {}
    checks: Mapping[str, str] = {}
    entity: Mapping[str, Any] | None = None
    at: int | None = None


def read(value: object, path: str, report: Report) -> CheckTest:
    """Parse a test; reports every mistake with its path."""
    if not isinstance(value, dict):
        report(path, "has to be an object")
        return CheckTest("")
    for name in value.keys() - MEMBERS:
        report(f"{path}.{name}", not_a_member(name, "test", sorted(MEMBERS)))
    return CheckTest(
        _word(value.get("expect"), f"{path}.expect", report),
        str(value["title"]) if "title" in value else None,
        _by_source(value.get("facts", {}), f"{path}.facts", report),
        _by_source(value.get("reasons", {}), f"{path}.reasons", report),
        _states(value.get("checks", {}), f"{path}.checks", report),
        _entity(value.get("entity"), f"{path}.entity", report),
        _moment(value.get("at"), f"{path}.at", report),
    )


def _word(value: object, path: str, report: Report) -> str:
    if not isinstance(value, str) or value not in _WORDS:
        report(path, one_of(value, _WORDS))
    return str(value)


def _by_source(value: object, path: str, report: Report) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(value, dict):
        report(path, "has to be an object of sources")
        return {}
    for source, one in value.items():
        if not isinstance(one, dict):
            report(f"{path}.{source}", "has to be an object of facts")
    return {source: one for source, one in value.items() if isinstance(one, dict)}


def _entity(value: object, path: str, report: Report) -> Mapping[str, Any] | None:
    """The document of an entity, with the parts that the catalog reads in their places."""
    if value is None:
        return None
    if not isinstance(value, dict) or deeper_than(value, _DEEPEST):
        report(path, f"has to be an object of {_DEEPEST} levels at most")
        return None
    if not isinstance(value.get("metadata", {}), dict):
        report(f"{path}.metadata", "has to be an object")
        return None
    relations = value.get("relations", [])
    if not isinstance(relations, list) or not all(map(_is_relation, relations)):
        report(f"{path}.relations", "has to be a list of objects with `type` and `targetRef`")
        return None
    return value


def _is_relation(value: object) -> bool:
    if not isinstance(value, dict):
        return False
    return all(isinstance(value.get(name), str) for name in ("type", "targetRef"))


def _states(value: object, path: str, report: Report) -> Mapping[str, str]:
    if not isinstance(value, dict):
        report(path, "has to be an object of checks")
        return {}
    return {id_: _word(one, f"{path}.{id_}", report) for id_, one in value.items()}


def _moment(value: object, path: str, report: Report) -> int | None:
    if value is None:
        return None
    try:
        return wanted_values.moment(value if isinstance(value, str) else "")
    except ValueError:
        report(path, "has to be an ISO 8601 date, or date and time with a UTC offset")
    return None
