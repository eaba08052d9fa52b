"""Rights that a pushed set remembers: each entity says by which of them it was found.

A push keeps nothing beside the entities of its set. What was found by a right that a later reading
does not have is not gone, as far as anybody knows.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from factbook.catalog import sets
from factbook.catalog.push_rules import PushRules
from factbook.importers.merge import Candidate, StoredMember
from factbook.importers.snapshot import ImportedItem, Snapshot

_NAME: Final = "import-rights"
_SEPARATOR: Final = ", "


def marked(snapshot: Snapshot) -> Snapshot:
    """The snapshot with an annotation on each entity that was found by rights."""
    parts = (replace(part, items=tuple(map(_marked, part.items))) for part in snapshot.parts)
    return replace(snapshot, parts=tuple(parts))


def _marked(item: ImportedItem) -> ImportedItem:
    if not item.rights:
        return item
    return replace(item, marks={**item.marks, _NAME: _SEPARATOR.join(sorted(item.rights))})


class RememberedRights:
    """Rights that the entities of a set were found by, of which a reading has only some."""

    def __init__(
        self, rules: PushRules, members: Iterable[StoredMember], seen: frozenset[str]
    ) -> None:
        self._annotation = f"{rules.annotator.domain}/{_NAME}"
        by_ref = {one.prepared.ref: self._rights(one.prepared.document) for one in members}
        self._lost = {ref: rights - seen for ref, rights in by_ref.items() if rights - seen}
        self.rights = frozenset[str]().union(*by_ref.values())

    def kept(self, found: Sequence[Candidate]) -> list[Candidate]:
        """Entities found, still with the rights that the reading does not have.

        Else a component of two resources would forget the one that is not seen any more.
        """
        return [self._kept(one, self._lost.get(one.prepared.ref)) for one in found]

    def _kept(self, one: Candidate, lost: frozenset[str] | None) -> Candidate:
        if not lost:
            return one
        entity = msgspec.json.decode(one.prepared.document)
        rights = lost | self._rights(one.prepared.document)
        entity["metadata"]["annotations"][self._annotation] = _SEPARATOR.join(sorted(rights))
        document = msgspec.json.encode(entity).decode()
        return one._replace(prepared=sets.unchanged(one.prepared.ref, document))

    def _rights(self, document: str) -> frozenset[str]:
        """The rights in the annotation of an entity."""
        annotations = msgspec.json.decode(document)["metadata"].get("annotations", {})
        text = annotations.get(self._annotation, "")
        return frozenset(text.split(_SEPARATOR)) if text else frozenset()
