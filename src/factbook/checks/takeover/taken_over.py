"""Result of a takeover: documents of files, and remarks by the item that they are about."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice, product
from typing import Any, Final, NamedTuple

from factbook.checks import state
from factbook.checks.definitions import scorecard
from factbook.checks.document_readers import DefinitionDocument, Kind
from factbook.checks.rules import contradictions, language
from factbook.checks.rules.check_definition import Check, CheckTest, parse_check
from factbook.checks.rules.language import FactCondition, FactReference
from factbook.checks.takeover.remarks import Remark, Remarks
from factbook.checks.trials.trial import outcome
from factbook.errors import InvalidItemsError

MOST_ITEMS: Final = 2_000
_MOST_TRIED: Final = 2_000
_VARIABLE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_OF_SETS: Final = ("contains", "doesNotContain", "containsAny", "containsAll")

Facts = dict[str, dict[str, Any]]


class ItemRemark(NamedTuple):
    """A remark on one item of the configuration that is taken over."""

    item: str
    remark: Remark


class TakenOver:
    """The documents that were written so far, and all remarks."""

    def __init__(self) -> None:
        self.documents: list[DefinitionDocument] = []
        self.remarks: list[ItemRemark] = []

    def add(self, kind: Kind, item: str, document: dict[str, Any], remarks: Remarks) -> None:
        """Add a document, unless a remark refuses it or this service would."""
        kept = {name: value for name, value in document.items() if value not in (None, [], {}, "")}
        if kept.get("id") in self.taken(kind):
            remarks.refuse("id", f"{kept['id']} is the id of another one")
        for path, name in _variables(kept):
            remarks.change(path, f"{name} is a variable of the configuration, and isn't filled in")
        if not remarks.refuses:
            try:
                self.documents.append(DefinitionDocument(kind, _whole(kind, kept)))
            except InvalidItemsError as error:
                for problem in error.problem_list:
                    remarks.refuse(problem["path"], problem["message"])
        self.note(item, remarks)

    def note(self, item: str, remarks: Remarks) -> None:
        """Add the remarks on an item."""
        self.remarks += [ItemRemark(item, remark) for remark in remarks.found]

    def taken(self, kind: Kind) -> list[str]:
        """The ids of the documents of a kind."""
        return [one.document["id"] for one in self.documents if one.kind == kind]


def _variables(document: Any) -> Iterator[tuple[str, str]]:
    """The variables of an app-config in texts of a document, each with its path."""
    waiting = [("", document)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str) and (found := _VARIABLE.search(value)):
            yield path, found[0]
        elif isinstance(value, dict):
            waiting += [(f"{path}.{name}".removeprefix("."), one) for name, one in value.items()]
        elif isinstance(value, list):
            waiting += [(f"{path}[{position}]", one) for position, one in enumerate(value)]


def _whole(kind: Kind, document: dict[str, Any]) -> dict[str, Any]:
    """The document, a check with tests; raises InvalidItemsError if this service refuses it."""
    if kind == "check":
        return _with_tests(document, parse_check(document))
    scorecard.parse(document)
    return document


def _tests(check: Check) -> list[dict[str, Any]]:
    """A test for each of pass, fail and unknown, as far as they are found by trying values."""
    found = dict[str, Facts]()
    for facts in islice(_every(check), _MOST_TRIED):
        found.setdefault(outcome(check, CheckTest("", facts=facts), 0), facts)
        if {"pass", "fail"} <= found.keys():
            break
    found.setdefault(outcome(check, CheckTest(""), 0), {})
    words = [word for word in state.WORDS if word in found]
    return [{"facts": found[word], "expect": word} for word in words]


def _every(check: Check) -> Iterator[Facts]:
    """Every combination of the values to try of each fact."""
    by_fact: dict[FactReference, list[FactCondition]] = {}
    for _, leaf in language.walk_leaves(check.rule):
        by_fact.setdefault(leaf.fact, []).append(leaf)
        if isinstance(leaf.value, FactReference):
            by_fact.setdefault(leaf.value, [])
    tried = {fact: _values(leaves) for fact, leaves in by_fact.items()}
    for values in product(*tried.values()):
        facts: Facts = {}
        for fact, value in zip(tried, values, strict=True):
            facts.setdefault(fact.source, {})[fact.fact] = value
        yield facts


def _values(leaves: list[FactCondition]) -> list[Any]:
    sets = [leaf.value for leaf in leaves if leaf.operator in _OF_SETS]
    if sets:
        items = [one for value in sets for one in (value if isinstance(value, list) else [value])]
        return [list(dict.fromkeys(items)), [], *([one] for one in dict.fromkeys(items))]
    plain = [leaf for leaf in leaves if contradictions.find_facet(leaf).name == "value"]
    return contradictions.sample_values(plain) or [1, 2, 3]


def _with_tests(document: Mapping[str, Any], check: Check) -> dict[str, Any]:
    """The document of a check with tests, unless its facts are parts of objects."""
    leaves = [leaf for _, leaf in language.walk_leaves(check.rule)]
    if any(reference.path for reference in language.walk_references(check.rule)) or not leaves:
        return dict(document)
    return {**document, "tests": _tests(check)}
