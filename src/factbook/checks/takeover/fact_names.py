"""The names of facts in other products: which source has a fact, and how it is called here."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from factbook.checks.takeover.remarks import Remarks
from factbook.integrations import catalog

# The fact retrievers that come with Backstage, and the catalog's own sources.
RETRIEVERS: Final[Mapping[str, str]] = {
    "entityMetadataFactRetriever": "entity-metadata",
    "entityOwnershipFactRetriever": "entity-ownership",
    "techdocsFactRetriever": "techdocs",
}
_RENAMED: Final[Mapping[tuple[str, str], str]] = {
    ("techdocs", "hasAnnotationBackstageIoTechdocsRef"): "hasTechdocsRef",
}
_KNOWN: Final[Mapping[str, Collection[str]]] = {
    source.id: frozenset(fact.name for fact in source.schema) for source in catalog.SOURCES
}
_NOT_OF_IDS: Final = re.compile(r"[^A-Za-z0-9._-]+")

Sources = Mapping[str, str]


def identifier(text: str) -> str:
    """A text as an id: other signs become dashes."""
    return _NOT_OF_IDS.sub("-", text).strip("-._")[:100]


def listed(names: object, remarks: Remarks) -> list[str]:
    """The names of sources that a check lists, or the only one; a remark names what is none."""
    found = [names] if isinstance(names, str) else names if isinstance(names, list) else []
    if not isinstance(names, str | list | None) or not all(isinstance(one, str) for one in found):
        remarks.change("factIds", "has parts that are left out: they are no texts")
    return [one for one in found if isinstance(one, str)]


def resolver(listed: Sequence[str], sources: Sources) -> Callable[[str], Mapping[str, str]]:
    """A function that finds the source of a fact among those listed.

    `sources` are the ids here of sources that are called otherwise there. It raises LookupError for
    a fact that none of them has, or that several could have: nothing is guessed.
    """
    ids = [sources.get(name) or RETRIEVERS.get(name) or identifier(name) for name in listed]

    def resolve(fact: str) -> Mapping[str, str]:
        having = [id_ for id_ in ids if _named(id_, fact) in _KNOWN.get(id_, ())]
        others = [id_ for id_ in ids if id_ not in _KNOWN]
        possible = [*having, *others]
        if len(possible) == 1:
            return {"source": possible[0], "fact": _named(possible[0], fact)}
        if not possible:
            raise LookupError(f"{fact} is a fact of none of: {', '.join(ids) or 'no source'}")
        raise LookupError(f"{fact} can be a fact of each of: {', '.join(possible)}")

    return resolve


def _named(source: str, fact: str) -> str:
    return _RENAMED.get((source, fact), fact)
