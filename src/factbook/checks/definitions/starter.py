"""The starter scorecard: off until somebody adopts it, and then drafts like any others.

A check of a code host is there for each configured one, about the entities whose facts that host
has. So what one host does not know makes nothing unknown at another.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from factbook.checks.definitions.definition_versions import check_store, scorecard_store
from factbook.checks.document_readers import DefinitionDocument
from factbook.facts.datasource import DataSource
from factbook.storage import Transaction

_FILE: Final = "starter.yaml"
# What says how a check is in the scorecard.
_OF_ENTRY: Final = ("level", "weight", "advisory")
_ANNOTATION: Final = "metadata.annotations."
_LEAF: Final = ("fact", "operator", "value")


class Adoption(NamedTuple):
    """Ids of new drafts, and of those that were there before and stay as they are."""

    made: tuple[str, ...]
    kept: tuple[str, ...]


class MissingFact(NamedTuple):
    """A check of code hosts that is left out, as no data source has its fact."""

    check: str
    title: str
    fact: str


def list_starter_documents(sources: Iterable[DataSource]) -> list[DefinitionDocument]:
    """The checks of the catalog and of the code hosts among the sources, and the scorecard."""
    given = _load_starter()
    found = [*given["catalog"]]
    for source in sorted(sources, key=lambda one: one.id):
        known = {fact.name for fact in source.schema}
        found += [
            _make_host_check(one, source) for one in given["codeHost"] if one["fact"] in known
        ]
    card = {**given["scorecard"], "entries": [_make_entry(one) for one in found]}
    return [
        *(DefinitionDocument("check", _make_check(one, card["appliesTo"])) for one in found),
        DefinitionDocument("scorecard", card),
    ]


def list_missing_facts(sources: Iterable[DataSource]) -> list[MissingFact]:
    """The checks of code hosts that are left out."""
    known = {fact.name for source in sources for fact in source.schema}
    return [
        MissingFact(one["check"], one["title"], one["fact"])
        for one in _load_starter()["codeHost"]
        if one["fact"] not in known
    ]


def adopt_starter(
    transaction: Transaction, wanted: Iterable[DefinitionDocument], actor: str, now: int
) -> Adoption:
    """Make drafts of the documents whose ids are not taken yet."""
    made, kept = [], []
    for kind, document in wanted:
        store = check_store if kind == "check" else scorecard_store
        if store.read(transaction, document["id"]) is None:
            store.create(transaction, document, actor, now)
            made.append(document["id"])
        else:
            kept.append(document["id"])
    return Adoption(tuple(made), tuple(kept))


def _make_check(one: Mapping[str, Any], applies_to: Any) -> dict[str, Any]:
    rest = {name: value for name, value in one.items() if name not in {"check", *_OF_ENTRY}}
    return {"id": one["check"], "appliesTo": applies_to, **rest}


def _make_entry(one: Mapping[str, Any]) -> dict[str, Any]:
    return {"check": one["check"], **{name: one[name] for name in _OF_ENTRY if name in one}}


def _make_host_check(one: Mapping[str, Any], source: DataSource) -> dict[str, Any]:
    """A check of one code host."""
    leaf = {"source": source.id, **{name: one[name] for name in _LEAF}}
    rest = {name: value for name, value in one.items() if name not in {"check", "title", *_LEAF}}
    about = [{"kind": "component", **conditions} for conditions in source.entity_filter or [{}]]
    good, bad = _make_examples(one)
    entity = _make_example_entity(about[0])
    return {
        "check": f"{source.id}-{one['check']}",
        "title": f"{one['title']} ({source.title})",
        **rest,
        "appliesTo": about,
        "rule": leaf,
        "tests": [
            {"entity": entity, "facts": {source.id: {one["fact"]: good}}, "expect": "pass"},
            {"entity": entity, "facts": {source.id: {one["fact"]: bad}}, "expect": "fail"},
            {"entity": entity, "facts": {source.id: {}}, "expect": "unknown"},
        ],
    }


def _make_example_entity(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """An entity with the annotations that have to exist."""
    keys = [key.removeprefix(_ANNOTATION) for key in conditions if key.startswith(_ANNOTATION)]
    annotations = dict.fromkeys(keys, "example")
    return {"kind": "Component", "metadata": {"name": "example", "annotations": annotations}}


def _make_examples(one: Mapping[str, Any]) -> tuple[Any, Any]:
    """A value that passes, and one that fails."""
    value = one["value"]
    if isinstance(value, bool):
        return value, not value
    return value, value - 1 if one["operator"].startswith("greater") else value + 1


@cache
def _load_starter() -> dict[str, Any]:
    # Not with the service: few ask for the starter, and nothing else of it reads YAML so early.
    from factbook import safe_yaml  # noqa: PLC0415

    text = files("factbook.checks.definitions").joinpath(_FILE).read_text("utf-8")
    found: dict[str, Any] = safe_yaml.load(text)
    return found
