"""Rendering of relations: both ends of an edge show it in their rows (0006).

A write renders the entities of its own sets at any time, as their rows are its own. Those of other
owners may get edges from other writes at the same moment: they are rendered last, under locks.
"""

from collections.abc import Iterator

from factbook.catalog import compliance, relations
from factbook.catalog.piecewise import ordered
from factbook.catalog.store import locks
from factbook.catalog.store.index_rows import portions
from factbook.catalog.store.locks import WriteLocks
from factbook.storage import Transaction


class Rendering:
    """What one write has to render: `touched` are references at an end of a changed edge."""

    def __init__(self, transaction: Transaction, held: WriteLocks) -> None:
        self._transaction = transaction
        self._held = held
        self.touched: set[str] = set()

    def own(self) -> None:
        """Render those that no other write renders meanwhile."""
        for portion in portions(ordered(self.touched)):
            found = self._owned(portion)
            own = {ref: id_ for ref, (id_, owner) in found.items() if self._held.owns(owner)}
            self._render(own)
            self.touched.difference_update(own)

    def others(self, added: dict[str, int]) -> None:
        """Render the rest, and those of the added entities to which others had pointed.

        To do at the end: from here to the commit, others wait who write about the same references.
        """
        self._held.meet(self._transaction, [*self.touched, *added])
        late = self._pointed_to(added)
        if self._held.is_alone:
            self.touched.clear()  # what is left does not exist
        for portion in portions(ordered(self.touched | late)):
            found = self._owned(portion)
            while self._held.share(self._transaction, {owner for _, owner in found.values()}):
                found = self._owned(portion)
            self._render({ref: id_ for ref, (id_, _) in found.items()})

    def _render(self, ids: dict[str, int]) -> None:
        self._transaction.many(
            "UPDATE entities SET relations = ?, compliance = ? WHERE id = ?",
            list(_rendered(self._transaction, ids)),
        )

    def _owned(self, refs: list[str]) -> dict[str, tuple[int, str]]:
        """Ids and owners of those of these entities that exist."""
        # Of the targets of a relation most need not exist: nothing more is read of those.
        rows = self._transaction.all(
            "SELECT e.ref, e.id, s.name FROM entities e LEFT JOIN sets s ON s.id = e.set_id "
            "WHERE e.ref IN LIST(?)",
            (refs,),
        )
        return {ref: (id_, locks.owner(name, ref)) for ref, id_, name in rows}

    def _pointed_to(self, added: dict[str, int]) -> set[str]:
        """Those of the added entities to which others than these state edges."""
        if not added:
            return set()
        sources = set(added.values())
        rows = self._transaction.all(
            "SELECT target_ref, source_id FROM relations WHERE target_ref IN LIST(?)",
            (list(added),),
        )
        return {ref for ref, source in rows if source not in sources}


def _rendered(transaction: Transaction, ids: dict[str, int]) -> Iterator[tuple[str, int, int]]:
    """(relations, compliance, id) of the entities whose relations differ from the stored ones."""
    if not ids:
        return
    edges = _edges(transaction, ids)
    for id_, bits, stored in transaction.all(
        "SELECT id, compliance, relations FROM entities WHERE id IN LIST(?)", (list(ids.values()),)
    ):
        now = edges.get(id_, [])
        if (text := relations.render(now)) != stored:
            yield text, compliance.with_relations(bits, now), id_


def _edges(transaction: Transaction, ids: dict[str, int]) -> dict[int, list[relations.Relation]]:
    """The relations of entities in both directions, by entity id."""
    edges: dict[int, list[relations.Relation]] = {}
    for id_, type_, target in transaction.all(
        "SELECT source_id, type, target_ref FROM relations WHERE source_id IN LIST(?)",
        (list(ids.values()),),
    ):
        edges.setdefault(id_, []).append((type_, target))
    for ref, type_, source in transaction.all(
        "SELECT r.target_ref, r.type, s.ref FROM relations r "
        "JOIN entities s ON s.id = r.source_id WHERE r.target_ref IN LIST(?)",
        (list(ids),),
    ):
        edges.setdefault(ids[ref], []).append((relations.REVERSE[type_], source))
    return edges
