"""RelationRenderer of relations: both ends of an edge show it in their rows (0006).

What shows very many relations is not rendered anew for a few that come or go: these are looked up
and put in, or taken out.

A write renders the entities of its own sets at any time, as their rows are its own. Those of other
owners may get edges from other writes at the same moment: they are rendered last, under locks.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from factbook.catalog import compliance, relations
from factbook.catalog.kinds import Relation
from factbook.catalog.piecewise import ordered
from factbook.catalog.relations import REVERSE, RenderedRelations
from factbook.catalog.store import locks
from factbook.catalog.store.index_rows import portions
from factbook.catalog.store.locks import WriteLocks
from factbook.storage import Transaction

# Characters of rendered relations: about a thousand of them.
LARGE: Final = 64 * 1024
# Edges that one write changes; with more, everything is rendered anew.
_FEW = 1_000


class RelationRenderer:
    """Renderer of the relations that one write changes.

    `touched` are the references at an end of a changed edge, `rendered` the ids of entities whose
    relations were written.
    """

    def __init__(self, transaction: Transaction, held: WriteLocks) -> None:
        self._transaction = transaction
        self._held = held
        self.touched: set[str] = set()
        self.rendered: set[int] = set()
        # The relations that may have come or gone, by what shows them; None: too many.
        self._asked: dict[str, set[Relation]] | None = {}
        self._noted = 0

    def note(self, ref: str, edges: Iterable[Relation]) -> None:
        """Render both ends of changed edges of an entity; its own end if its row is an old one."""
        for type_, target in edges:
            self.touched.add(target)
            self._noted += 1
            if self._noted > _FEW:
                self._asked = None
            elif self._asked is not None:
                self._asked.setdefault(target, set()).add((REVERSE[type_], ref))
                self._asked.setdefault(ref, set()).add((type_, target))

    def own(self, added: Collection[str]) -> None:
        """Render those that no other write renders meanwhile, nor points at, as at the added."""
        early = self.touched if self._held.is_alone else self.touched.difference(added)
        for portion in portions(ordered(early)):
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
        for ref in late:
            if self._asked is not None:
                self._asked.pop(ref, None)
        if self._held.is_alone:
            self.touched.clear()  # what is left does not exist
        for portion in portions(ordered(self.touched | late)):
            found = self._owned(portion)
            while self._held.share(self._transaction, {owner for _, owner in found.values()}):
                found = self._owned(portion)
            self._render({ref: id_ for ref, (id_, _) in found.items()})

    def _render(self, ids: dict[str, int]) -> None:
        rows = list(_rendered(self._transaction, ids, self._asked or {}))
        self._transaction.many(
            "UPDATE entities SET relations = ?, "
            # Another write may have set the bit since the others were read.
            f"compliance = (compliance & {compliance.OWNER_RENAMED}) | ? WHERE id = ?",
            rows,
        )
        self.rendered.update(row[2] for row in rows)

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


def _rendered(
    transaction: Transaction, ids: dict[str, int], asked: Mapping[str, set[Relation]]
) -> Iterator[tuple[str, int, int]]:
    """(relations, compliance, id) of the entities whose relations differ from the stored ones."""
    if not ids:
        return
    stored = transaction.all(
        "SELECT ref, id, compliance, relations FROM entities WHERE id IN LIST(?)",
        (list(ids.values()),),
    )
    rest = list[tuple[int, int, str]]()
    for ref, id_, bits, text in stored:
        if len(text) <= LARGE or ref not in asked:
            rest.append((id_, bits, text))
            continue
        shown = RenderedRelations(text)
        if shown.change(asked[ref], _there(transaction, ref, id_, asked[ref])):
            yield shown.text, bits & ~compliance.RELATION_BITS | shown.compliance, id_
    among = {id_ for id_, _, _ in rest}
    edges = _edges(transaction, {ref: id_ for ref, id_ in ids.items() if id_ in among})
    for id_, bits, text in rest:
        now = edges.get(id_, [])
        if (written := relations.render(now)) != text:
            yield written, compliance.with_relations(bits, now), id_


def _there(
    transaction: Transaction, ref: str, id_: int, asked: Iterable[Relation]
) -> set[Relation]:
    """Those of an entity's relations that it states itself, or the other side."""
    by_type: dict[str, list[str]] = {}
    for type_, target in asked:
        by_type.setdefault(type_, []).append(target)
    found = set[Relation]()
    for type_, targets in by_type.items():
        own = transaction.all(_OWN, (id_, type_, targets))
        others = transaction.all(_OTHERS, (targets, REVERSE[type_], ref))
        found |= {(type_, target) for (target,) in (*own, *others)}
    return found


def _edges(transaction: Transaction, ids: dict[str, int]) -> dict[int, list[Relation]]:
    """The relations of entities in both directions, by entity id."""
    edges: dict[int, list[Relation]] = {}
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


_OWN = """
SELECT target_ref FROM relations WHERE source_id = ? AND type = ? AND target_ref IN LIST(?)
"""

_OTHERS = """
SELECT s.ref FROM entities s JOIN relations r ON r.source_id = s.id
WHERE s.ref IN LIST(?) AND r.type = ? AND r.target_ref = ?
"""
