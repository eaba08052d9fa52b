"""Duplicate entities in the files of a push; a set holds each entity once."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from factbook.cli.failures import CommandError
from factbook.cli.output import note

if TYPE_CHECKING:
    from factbook.cli.documents import EntityDocument

OneOf = Literal["first", "last", "error"]


def settled(documents: Sequence["EntityDocument"], keep: OneOf) -> list["EntityDocument"]:
    """The documents with duplicates removed, in the order of first occurrence.

    Raises Failure naming the places of each duplicate entity, unless `keep` says which one to use.
    """
    places: dict[str, list[EntityDocument]] = {}
    for document in documents:
        if document.ref is not None:
            places.setdefault(document.ref, []).append(document)
    several = {ref: found for ref, found in places.items() if len(found) > 1}
    if not several:
        return list(documents)
    if keep == "error":
        raise CommandError(
            f"{_entities(several)} in the files more than once, nothing was written:",
            lines=[_line(ref, found) for ref, found in several.items()],
            hint="--on-duplicate first or last keeps one of each.",
        )
    left_out = len(documents) - len(places) - sum(each.ref is None for each in documents)
    note(f"Duplicates left out: {left_out}. Of each entity the {keep} one is kept.")
    kept = {ref: found[0 if keep == "first" else -1] for ref, found in several.items()}
    return [
        kept.get(each.ref or "", each)
        for each in documents
        if each.ref not in several or each is several[each.ref][0]
    ]


def _entities(several: dict[str, list["EntityDocument"]]) -> str:
    return f"{len(several)} entities are" if len(several) > 1 else "1 entity is"


def _line(ref: str, found: Sequence["EntityDocument"]) -> str:
    return f"{ref}: {', '.join(each.origin for each in found)}"
