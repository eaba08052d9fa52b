"""Changes of entities made by revisions of sets: those of one revision, or all since a time."""

from typing import Final, Literal, NamedTuple

from factbook.catalog.store.documents import DOCUMENT
from factbook.catalog.store.revisions import COLUMNS, SetRevision
from factbook.errors import NotFoundError
from factbook.storage import Database

ChangeKind = Literal["added", "updated", "removed"]
CHANGE_KINDS: Final[tuple[ChangeKind, ...]] = ("added", "updated", "removed")

# Revisions that one page looks through, and entities of one revision, if only some are wanted.
_REVISIONS: Final = 50
_LOOKED_THROUGH: Final = 2_000


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


class ChangeFilter(NamedTuple):
    """A filter of the entities changed by a revision: by kind of change and a part of the name."""

    kind: ChangeKind | None = None
    text: str = ""

    def names(self, ref: str) -> bool:
        """Return true if the text is in the reference, with or without the default namespace."""
        return self.text in ref or self.text in ref.replace(":default/", ":", 1)


EVERY_CHANGE: Final = ChangeFilter()


class RevisionChanges(NamedTuple):
    """A page of the entities changed by a revision, by reference; `more` is where the next begins.

    A page of few of them looks through a bounded number of all, so it may hold none.
    """

    revision: SetRevision
    items: list[Changed]
    more: str | None


class PastPlace(NamedTuple):
    """Position at the end of a page of changes since a time."""

    created_at: int
    set_id: int
    number: int
    ref: str


class Past(NamedTuple):
    """An entity changed by a revision of a set, and the user who pushed it."""

    place: PastPlace
    set: str
    by: str
    changed: Changed


class PastChanges(NamedTuple):
    """A page of changes, oldest first; `more` is None on the last page."""

    changes: list[Past]
    more: PastPlace | None


async def page(
    database: Database,
    name: str,
    number: int,
    after: str,
    limit: int,
    wanted: ChangeFilter = EVERY_CHANGE,
) -> RevisionChanges:
    """Up to `limit` entities changed by revision `number`, after the reference `after`.

    Raises NotFoundError for a set that never existed and for a revision that is no longer kept.
    """
    found = await database.one(_REVISION, (name, number))
    if found is None:
        raise NotFoundError(f"The set {name} has no revision {number} that is still kept.")
    set_id, *revision = found
    at_once = limit if wanted == EVERY_CHANGE else _LOOKED_THROUGH
    rows = await database.all(_CHANGED, (set_id, number, after, at_once + 1))
    asked = {ref: before for ref, before in rows[:at_once] if wanted.names(ref)}
    if wanted.kind is not None:
        is_new = wanted.kind == "added"
        asked = {ref: text for ref, text in asked.items() if (text is None) == is_new}
    items = [
        one
        for one in await _changed(database, set_id, number, asked)
        if wanted.kind in (None, one.kind)
    ]
    more = rows[at_once - 1][0] if len(rows) > at_once else None
    if len(items) > limit:
        more = items[limit - 1].ref
    return RevisionChanges(SetRevision(*revision), items[:limit], more)


async def all_since(
    database: Database, after: PastPlace, kind: str | None, limit: int
) -> PastChanges:
    """Up to `limit` changes after a position, from the revisions that are kept, ordered by time.

    A page scans a bounded number of revisions, so it may hold fewer changes.
    """
    revisions = await database.all(_SINCE, (after.created_at, *after[:3], _REVISIONS))
    found: list[Past] = []
    narrowed = _CHANGED
    kinds: tuple[str, ...] = ()
    if kind is not None:
        narrowed = _CHANGED.replace(" ORDER", " AND ref >= ? AND ref < ? ORDER")
        kinds = (f"{kind}:", f"{kind};")
    for created_at, set_id, number, name, by in revisions:
        place = PastPlace(created_at, set_id, number, "")
        behind = after.ref if place[:3] == after[:3] else ""
        most = limit - len(found) + 1
        rows = await database.all(narrowed, (set_id, number, behind, *kinds, most))
        before: dict[str, str | None] = dict(rows[: most - 1])
        found += [
            Past(place._replace(ref=one.ref), name, by, one)
            for one in await _changed(database, set_id, number, before)
        ]
        if len(rows) == most:
            return PastChanges(found, found[-1].place if found else after)
    if len(revisions) < _REVISIONS:
        return PastChanges(found, None)
    created_at, set_id, number, *_ = revisions[-1]
    return PastChanges(found, PastPlace(created_at, set_id, number, _LAST))


async def are_told(database: Database, ref: str, start: int, end: int) -> bool:
    """Return true if a kept revision changed the entity after `start` and no later than `end`."""
    return await database.one(_TOLD, (start, end, ref)) is not None


async def _changed(
    database: Database, set_id: int, number: int, before: dict[str, str | None]
) -> list[Changed]:
    """Compare the entities changed by a revision with their documents before it."""
    # What an entity was after a revision is what it was before the next one that changed it.
    later = await database.all(_LATER, (set_id, number, list(before)))
    rest = [ref for ref in before if ref not in {ref for ref, _ in later}]
    now: dict[str, str] = dict(await database.all(_NOW, (set_id, rest)))
    since = {**now, **dict(later)}
    return [Changed(ref, document, since.get(ref)) for ref, document in before.items()]


_REVISION = f"""
SELECT r.set_id, {", ".join(f"r.{column}" for column in COLUMNS)}
FROM sets s JOIN revisions r ON r.set_id = s.id WHERE s.name = ? AND r.number = ?
"""

# Sorts behind every reference.
_LAST: Final = chr(0x10FFFF)

_SINCE = """
SELECT r.created_at, r.set_id, r.number, s.name, r.created_by
FROM revisions r JOIN sets s ON s.id = r.set_id
WHERE r.created_at >= ? AND (r.created_at, r.set_id, r.number) >= (?, ?, ?)
ORDER BY r.created_at, r.set_id, r.number LIMIT ?
"""

_TOLD = """
SELECT 1 FROM revisions r JOIN revision_changes c ON c.set_id = r.set_id AND c.number = r.number
WHERE r.created_at > ? AND r.created_at <= ? AND c.ref = ? LIMIT 1
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
