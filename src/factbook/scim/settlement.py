"""Settlement of the catalog after a change: which entities follow, under which names.

It works inside the transaction of the change, while nobody else changes what was pushed.
"""

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import msgspec

from factbook.catalog import sets
from factbook.catalog.push_rules import PushRules
from factbook.catalog.sets import Prepared
from factbook.catalog.store import set_changes
from factbook.catalog.store.set_changes import SetChange
from factbook.errors import InputError, InvalidItemsError
from factbook.importers.candidates import ImportMarks
from factbook.importers.snapshot import ImportedItem, set_name
from factbook.scim import entities, store
from factbook.scim.store import ScimRow
from factbook.storage import Transaction

IMPORTER: Final = "scim"
PART: Final = "people"
SET: Final = set_name(IMPORTER, PART)
_Read = Callable[[Transaction, Collection[str]], list[tuple[str, str]]]
# Of names that were taken, so many are tried again with each change.
_TRIED_AGAIN: Final = 100
# Of entities that are missing from the set, about so many are brought back with each change.
_BROUGHT_BACK: Final = 1_000
_PAGE: Final = 1_000


class Settlement:
    """Rows that a change has touched, and what the catalog has to follow in."""

    def __init__(self, transaction: Transaction, rules: PushRules) -> None:
        self._transaction = transaction
        self._rules = rules
        self._before: dict[str, ScimRow | None] = {}
        self._rows: dict[str, ScimRow | None] = {}
        self._dirty: set[str] = set()

    def put(self, before: ScimRow | None, row: ScimRow) -> ScimRow:
        """A resource that is new or has changed, under the name that it gets."""
        named = self._named(row)
        self._note(named.id, before, named)
        return named

    def remove(self, row: ScimRow) -> None:
        """A resource that is deleted, with its memberships."""
        self._dirty |= {member for _, member in store.members_of(self._transaction, [row.id])}
        self._dirty |= {group for _, group in store.memberships(self._transaction, [row.id])}
        self._note(row.id, row, None)
        store.delete(self._transaction, row.id)

    @property
    def removed(self) -> list[str]:
        """The ids of resources that were deleted."""
        return [id_ for id_, row in self._rows.items() if row is None]

    def members(self, group: str, come: Collection[str], gone: Collection[str]) -> None:
        """Members that come to a group, and that leave it."""
        store.change_members(self._transaction, group, come, gone)
        self._dirty |= {group, *come, *gone}

    def users_of(self, groups: Collection[str]) -> list[ScimRow]:
        """Users who have changed, or who came to or left a group of these names, or whose group
        got or lost such a name: each as before and as now.
        """
        changed = {id_ for id_, row in self._rows.items() if row != self._before[id_]}
        versions = [row for id_ in changed for row in (self._before[id_], self._rows[id_]) if row]
        named = {row.id for row in versions if row.type == "Group" and row.name in groups}
        ids = self._dirty | {user for _, user in store.members_of(self._transaction, named)}
        others = store.rows_of(self._transaction, ids - changed) if self._touches(groups) else {}
        return [row for row in (*versions, *others.values()) if row.type == "User"]

    def _touches(self, groups: Collection[str]) -> bool:
        rows = (*self._before.values(), *self._rows.values())
        return any(row and row.type == "Group" and row.name in groups for row in rows)

    def change(self) -> SetChange:
        """The change of the catalog that follows; stores the rows."""
        self._miss()
        # Anywhere, since those that stay in trouble would keep others from their turn.
        start = str(uuid.uuid4())
        for troubled in store.troubled(self._transaction, _TRIED_AGAIN, start):
            if troubled.id not in self._rows:
                self.put(troubled, troubled)
        self._yield_to_others()
        changed = [row for id_, row in self._rows.items() if row and row != self._before[id_]]
        store.save(self._transaction, changed)
        return self._set_change()

    def _miss(self) -> None:
        """Find entities that left the set by a deletion, restore or push, to bring them back."""
        if set_changes.size(self._transaction, SET) >= store.shown_count(self._transaction):
            return
        after, missing = "", set[str]()
        while len(missing) < _BROUGHT_BACK and (
            page := store.shown(self._transaction, after, _PAGE)
        ):
            there = set_changes.owned(self._transaction, SET, [ref for _, ref in page])
            missing |= {id_ for id_, ref in page if ref not in there}
            after = page[-1][0]
        self._dirty |= missing

    def _note(self, id_: str, before: ScimRow | None, row: ScimRow | None) -> None:
        self._before.setdefault(id_, before)
        self._rows[id_] = row
        self._dirty.add(id_)

    def _named(self, row: ScimRow) -> ScimRow:
        """The row with the best reference that nobody else has, and what is to be said of it."""
        wanted = entities.references(row.type, row.name, row.id, strict=self._rules.strict_names)
        taken = store.holders(self._transaction, wanted)
        free = [ref for ref in wanted if taken.get(ref, row.id) == row.id]
        ref = row.ref if row.ref in free else free[0] if free else ""
        problem = ""
        if ref != wanted[0]:
            now = f"this one is {ref}" if ref else "this one is not in the catalog"
            problem = f'{row.type} "{row.name}": {wanted[0]} is another one already, {now}'
        return row._replace(ref=ref, problem=problem)

    def _neighbours(self, id_: str) -> set[str]:
        """Ids of those that show this reference: members of a group, and groups around it."""
        inside = {member for _, member in store.members_of(self._transaction, [id_])}
        return inside | {group for _, group in store.memberships(self._transaction, [id_])}

    def _yield_to_others(self) -> None:
        """Leave references alone that belong to others than the set.

        Whoever shows a reference that changes is looked at in turn, each of them once.
        """
        seen = set[str]()
        while fresh := self._dirty - seen:
            seen |= fresh
            for id_, row in store.rows_of(self._transaction, fresh - self._rows.keys()).items():
                self._note(id_, row, row)
            self._give_up(fresh)
            for id_ in fresh & self._rows.keys():
                if _ref(self._rows[id_]) != _ref(self._before[id_]):
                    self._dirty |= self._neighbours(id_)

    def _give_up(self, ids: Iterable[str]) -> None:
        """Take the references away that others own."""
        mine = {row.ref: row for id_ in ids if (row := self._rows.get(id_)) and row.ref}
        owners = set_changes.foreign_owners(self._transaction, SET, mine)
        for ref, owner in owners.items():
            row = mine[ref]
            told = f'{row.type} "{row.name}": {ref} is owned by {owner}, and stays as it is there'
            self._rows[row.id] = row._replace(ref="", problem=told)

    def _set_change(self) -> SetChange:
        rows = [row for row in self._rows.values() if row]
        shown = [row for row in rows if row.ref and row.active and row.id in self._dirty]
        wanted = self._prepared(shown)
        refs = {row.id: row.ref for row in shown}
        gone = [
            before.ref
            for id_, before in self._before.items()
            if before and before.ref and before.active and before.ref != refs.get(id_)
        ]
        kept = {one.ref for one in wanted}
        return SetChange(wanted, [ref for ref in gone if ref not in kept])

    def _prepared(self, shown: Iterable[ScimRow]) -> list[Prepared]:
        """The entities of resources, with the references of groups and children."""
        users, groups = list[ScimRow](), list[ScimRow]()
        for row in shown:
            (users if row.type == "User" else groups).append(row)
        around = self._links(store.memberships, users)
        inside = self._links(store.members_of, groups)
        items = [
            *(entities.group(row.id, row.ref, row.resource, inside[row.id]) for row in groups),
            *(entities.user(row.id, row.ref, row.resource, around[row.id]) for row in users),
        ]
        marks = ImportMarks(self._rules)
        return [self._one(marks, item) for item in items]

    def _links(self, read: _Read, rows: list[ScimRow]) -> Mapping[str, list[str]]:
        """The references of the groups that each of these is in, or has in it."""
        found: dict[str, list[str]] = {row.id: [] for row in rows}
        pairs = read(self._transaction, list(found)) if rows else []
        others = {other for _, other in pairs}
        known = {id_: row for id_, row in self._rows.items() if id_ in others}
        known |= store.rows_of(self._transaction, others - known.keys())
        for id_, other in pairs:
            row = known.get(other)
            if row and row.type == "Group" and row.ref:
                found[id_].append(row.ref)
        return found

    def _one(self, marks: ImportMarks, item: ImportedItem) -> Prepared:
        raw = msgspec.Raw(msgspec.json.encode(marks.marked(item)))
        try:
            [prepared] = sets.prepare_one(raw, SET, self._rules).items
        except InvalidItemsError as error:
            raise InputError(error.message, scimType="invalidValue") from None
        return prepared


def _ref(row: ScimRow | None) -> str:
    return row.ref if row else ""
