"""Changes of entities made by revisions of sets: those of one revision, or all since a time."""

from typing import Literal, NamedTuple

from factbook.catalog.store.documents import DOCUMENT
from factbook.catalog.store.revisions import COLUMNS, SetRevision
from factbook.errors import NotFoundError
from factbook.storage import Database

ChangeKind = Literal["added", "updated", "removed"]


class Changed(NamedTuple):
    """An entity changed by a revision: its document before and after; None if it did not exist."""

    ref: str
    before: str | None
    after: str | None

    @property
    def kind(self) -> ChangeKind:
        """Kind of the change."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "updated"


class RevisionChanges(NamedTuple):
    """A page of the entities changed by a revision, by reference; `more` is true if any follow."""

    revision: SetRevision
    items: list[Changed]
    more: bool


async def page(
    database: Database, name: str, number: int, after: str, limit: int
) -> RevisionChanges:
    """Up to `limit` entities behind the reference `after` that revision `number` changed.

    Raises NotFoundError for a set that never was and a revision that is not kept.
    """
    found = await database.one(_REVISION, (name, number))
    if found is None:
        raise NotFoundError(f"The set {name} has no revision {number} that is still kept.")
    set_id, *revision = found
    rows = await database.all(_CHANGED, (set_id, number, after, limit + 1))
    before: dict[str, str | None] = dict(rows[:limit])
    # What an entity was after a revision is what it was before the next one that changed it.
    later = await database.all(_LATER, (set_id, number, list(before)))
    rest = [ref for ref in before if ref not in {ref for ref, _ in later}]
    now: dict[str, str] = dict(await database.all(_NOW, (set_id, rest)))
    since = {**now, **dict(later)}
    items = [Changed(ref, document, since.get(ref)) for ref, document in before.items()]
    return RevisionChanges(SetRevision(*revision), items, len(rows) > limit)


_REVISION = f"""
SELECT r.set_id, {", ".join(f"r.{column}" for column in COLUMNS)}
FROM sets s JOIN revisions r ON r.set_id = s.id WHERE s.name = ? AND r.number = ?
"""

_CHANGED = """
SELECT ref, document FROM revision_changes
WHERE set_id = ? AND number = ? AND ref > ? ORDER BY ref LIMIT ?
"""

# For each later revision a look at these references, however much else it changed. The rows come
# newest first: of several, the earliest wins.
_LATER = """
SELECT c.ref, c.document FROM revisions r CROSS JOIN revision_changes c
WHERE r.set_id = ? AND r.number > ? AND c.set_id = r.set_id AND c.number = r.number
    AND c.ref IN LIST(?)
ORDER BY c.number DESC
"""

_NOW = f"SELECT e.ref, {DOCUMENT} FROM entities e WHERE e.set_id = ? AND e.ref IN LIST(?)"
