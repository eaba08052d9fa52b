"""Checks that read the states of other checks: which, and that none reads itself in the end."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from graphlib import CycleError, TopologicalSorter
from typing import Any

import msgspec

from factbook.checks.definitions.check import Check
from factbook.checks.rules import condition
from factbook.checks.rules.fact_reference import CHECKS
from factbook.errors import Problems
from factbook.storage import Transaction

Document = Mapping[str, Any]


def referenced(document: Document) -> dict[str, str]:
    """The ids of the checks that a document reads, each with the path of its first mention."""
    found: dict[str, str] = {}
    for name in ("applicableWhen", "rule"):
        for path, check_id in _mentions(document.get(name), name):
            found.setdefault(check_id, path)
    return found


def read_by(check: Check) -> frozenset[str]:
    """The ids of the checks whose states a check reads."""
    facts = (fact for _, rule in check.rules() for fact in condition.references(rule))
    return frozenset(fact.fact for fact in facts if fact.source == CHECKS)


def in_order(reads: Mapping[str, Set[str]]) -> list[str]:
    """The ids of checks, each after those that it reads.

    Those of a cycle, which their publication refuses, come in any order.
    """
    sorter = TopologicalSorter({id_: read & reads.keys() for id_, read in reads.items()})
    try:
        return list(sorter.static_order())
    except CycleError:
        return list(reads)


def way_back(own: str, first: str, reads: Callable[[str], Iterable[str]]) -> list[str]:
    """The shortest way from a check back to itself by way of `first`; empty if there is none."""
    ways, seen = [[own, first]], set[str]()
    for way in ways:
        if way[-1] == own:
            return way
        if way[-1] not in seen:
            seen.add(way[-1])
            ways += [[*way, id_] for id_ in reads(way[-1])]
    return []


def verify(
    document: Document,
    others: Mapping[str, Document],
    known: set[str],
    drafts: Collection[str] = (),
) -> None:
    """Raise InvalidItemsError if a document reads checks that do not exist, or itself in the end.

    `others` has at least the documents that read checks, by id; `known` are all ids, and `drafts`
    those that have a draft beside their document.
    """
    own = document["id"]
    problems = Problems()
    for check_id, path in referenced(document).items():
        if check_id != own and check_id not in known:
            problems.report(path, f"there is no check {check_id}")
        elif circle := way_back(own, check_id, lambda id_: referenced(others.get(id_, {}))):
            problems.report(path, _circle(circle, drafts))
    problems.check()


def _circle(circle: list[str], drafts: Collection[str]) -> str:
    text = f"the check would read itself: {' → '.join(circle)}"
    waiting = [id_ for id_ in circle[1:-1] if id_ in drafts]
    return f"{text}; publish the draft of {' and '.join(waiting)} first" if waiting else text


def readers(transaction: Transaction, check_id: str, *, drafts: bool = False) -> list[str]:
    """The ids of the checks that read this one, directly or not; with `drafts` in drafts, too."""
    reads: dict[str, set[str]] = {}
    for id_, *texts in transaction.all(_READING):
        documents = [msgspec.json.decode(text) for text in texts[: 3 if drafts else 2] if text]
        reads[id_] = {read for document in documents for read in referenced(document)}
    found, new = set[str](), {check_id}
    while new:
        found |= new
        new = {id_ for id_, read in reads.items() if id_ not in found and read & found}
    return sorted(found - {check_id})


def _mentions(condition: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(condition, list):
        for position, one in enumerate(condition):
            yield from _mentions(one, f"{path}[{position}]")
    elif isinstance(condition, Mapping):
        if condition.get("source") == CHECKS:
            yield f"{path}.fact", str(condition.get("fact"))
        for name in ("all", "any", "not", "value"):
            if name in condition:
                yield from _mentions(condition[name], f"{path}.{name}")


# The documents that can name another check hold the word.
_READING = """
SELECT id, published, pending, draft FROM checks
WHERE published LIKE '%"checks"%' OR pending LIKE '%"checks"%' OR draft LIKE '%"checks"%'
"""
