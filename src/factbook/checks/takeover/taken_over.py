"""Result of a takeover: documents of files, and remarks by the item that they are about.

Remarks list what was left behind, what was changed, and what nobody can tell. Names of facts in
other products are mapped to the sources that have them here.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any, Final, NamedTuple

from factbook.checks import state
from factbook.checks.definitions import scorecard
from factbook.checks.document_readers import DefinitionDocument, Kind
from factbook.checks.rules import check_trial, language
from factbook.checks.rules.check_definition import Check, CheckTest, parse_check
from factbook.checks.rules.check_trial import evaluate_test
from factbook.checks.rules.language import FactCondition, FactReference
from factbook.errors import InvalidItemsError
from factbook.integrations import catalog

# The check cannot be written.
REFUSED: Final = "refused"
# It can, and something of it is lost or means something else.
CHANGED: Final = "changed"
_RENAMED: Final[Mapping[tuple[str, str], str]] = {
    ("techdocs", "hasAnnotationBackstageIoTechdocsRef"): "hasTechdocsRef",
}
_KNOWN: Final[Mapping[str, Collection[str]]] = {
    source.id: frozenset(fact.name for fact in source.schema) for source in catalog.SOURCES
}
_NOT_OF_IDS: Final = re.compile(r"[^A-Za-z0-9._-]+")
MOST_TAKEN_OVER: Final = 2_000
_MOST_TRIED: Final = 2_000
_VARIABLE: Final = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
_OF_SETS: Final = ("contains", "doesNotContain", "containsAny", "containsAll")


class Remark(NamedTuple):
    """One remark on a place in what is taken over; `kind` is REFUSED or CHANGED."""

    path: str
    kind: str
    message: str


class Remarks:
    """The remarks on one document, in their order."""

    def __init__(self) -> None:
        self.found: list[Remark] = []

    @property
    def refuses(self) -> bool:
        """True if something cannot be taken over."""
        return any(one.kind == REFUSED for one in self.found)

    def refuse(self, path: str, message: str) -> None:
        """Add what keeps the document from being taken over."""
        self.found.append(Remark(path, REFUSED, message))

    def change(self, path: str, message: str) -> None:
        """Add what is lost or means something else."""
        self.found.append(Remark(path, CHANGED, message))


# The fact retrievers that come with Backstage, and the catalog's own sources.
RETRIEVERS: Final[Mapping[str, str]] = {
    "entityMetadataFactRetriever": "entity-metadata",
    "entityOwnershipFactRetriever": "entity-ownership",
    "techdocsFactRetriever": "techdocs",
}


Sources = Mapping[str, str]


def make_identifier(text: str) -> str:
    """A text as an id: other signs become dashes."""
    return _NOT_OF_IDS.sub("-", text).strip("-._")[:100]


def list_names(names: object, remarks: Remarks) -> list[str]:
    """The names of sources that a check lists, or the only one; a remark names what is none."""
    found = [names] if isinstance(names, str) else names if isinstance(names, list) else []
    if not isinstance(names, str | list | None) or not all(isinstance(one, str) for one in found):
        remarks.change("factIds", "has parts that are left out: they are no texts")
    return [one for one in found if isinstance(one, str)]


def make_resolver(listed: Sequence[str], sources: Sources) -> Callable[[str], Mapping[str, str]]:
    """A function that finds the source of a fact among those listed.

    `sources` are the ids here of sources that are called otherwise there. It raises LookupError for
    a fact that none of them has, or that several could have: nothing is guessed.
    """
    ids = [sources.get(name) or RETRIEVERS.get(name) or make_identifier(name) for name in listed]

    def resolve(fact: str) -> Mapping[str, str]:
        having = [id_ for id_ in ids if _match_name(id_, fact) in _KNOWN.get(id_, ())]
        others = [id_ for id_ in ids if id_ not in _KNOWN]
        possible = [*having, *others]
        if len(possible) == 1:
            return {"source": possible[0], "fact": _match_name(possible[0], fact)}
        if not possible:
            raise LookupError(f"{fact} is a fact of none of: {', '.join(ids) or 'no source'}")
        raise LookupError(f"{fact} can be a fact of each of: {', '.join(possible)}")

    return resolve


def _match_name(source: str, fact: str) -> str:
    return _RENAMED.get((source, fact), fact)


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
        for path, name in _list_variables(kept):
            remarks.change(path, f"{name} is a variable of the configuration, and isn't filled in")
        if not remarks.refuses:
            try:
                self.documents.append(DefinitionDocument(kind, _check_whole(kind, kept)))
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


def _list_variables(document: Any) -> Iterator[tuple[str, str]]:
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


def _check_whole(kind: Kind, document: dict[str, Any]) -> dict[str, Any]:
    """The document, a check with tests; raises InvalidItemsError if this service refuses it."""
    if kind == "check":
        return _add_tests(document, parse_check(document))
    scorecard.parse_scorecard(document)
    return document


def _make_tests(check: Check) -> list[dict[str, Any]]:
    """A test for each of pass, fail and unknown, as far as they are found by trying values."""
    found = dict[str, Facts]()
    for facts in islice(_make_every_test(check), _MOST_TRIED):
        found.setdefault(evaluate_test(check, CheckTest("", facts=facts), 0), facts)
        if {"pass", "fail"} <= found.keys():
            break
    found.setdefault(evaluate_test(check, CheckTest(""), 0), {})
    words = [word for word in state.WORDS if word in found]
    return [{"facts": found[word], "expect": word} for word in words]


def _make_every_test(check: Check) -> Iterator[Facts]:
    """Every combination of the values to try of each fact."""
    by_fact: dict[FactReference, list[FactCondition]] = {}
    for _, leaf in language.walk_leaves(check.rule):
        by_fact.setdefault(leaf.fact, []).append(leaf)
        if isinstance(leaf.value, FactReference):
            by_fact.setdefault(leaf.value, [])
    tried = {fact: _pick_values(leaves) for fact, leaves in by_fact.items()}
    for values in product(*tried.values()):
        facts: Facts = {}
        for fact, value in zip(tried, values, strict=True):
            facts.setdefault(fact.source, {})[fact.fact] = value
        yield facts


def _pick_values(leaves: list[FactCondition]) -> list[Any]:
    sets = [leaf.value for leaf in leaves if leaf.operator in _OF_SETS]
    if sets:
        items = [one for value in sets for one in (value if isinstance(value, list) else [value])]
        return [list(dict.fromkeys(items)), [], *([one] for one in dict.fromkeys(items))]
    plain = [leaf for leaf in leaves if check_trial.find_facet(leaf).name == "value"]
    return check_trial.sample_values(plain) or [1, 2, 3]


def _add_tests(document: Mapping[str, Any], check: Check) -> dict[str, Any]:
    """The document of a check with tests, unless its facts are parts of objects."""
    leaves = [leaf for _, leaf in language.walk_leaves(check.rule)]
    if any(reference.path for reference in language.walk_references(check.rule)) or not leaves:
        return dict(document)
    return {**document, "tests": _make_tests(check)}
