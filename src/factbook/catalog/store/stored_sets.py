"""The push interface: replace a set, change one entity, restore a revision, and read sets.

Functions that write accept `write`, which runs a function in a transaction and defaults to the
database's own.
"""

from collections.abc import AsyncIterator, Collection, Sequence
from typing import NamedTuple

from factbook.auth.tokens import Narrowing
from factbook.catalog import search, sets
from factbook.catalog.push_rules import PushRules
from factbook.catalog.sets import Prepared, PreparedPush
from factbook.catalog.store import apply, diff, locks, removed, revisions
from factbook.catalog.store.apply import Actor, WriteResult
from factbook.catalog.store.diff import Guards, WritePlan
from factbook.catalog.store.documents import DOCUMENT
from factbook.catalog.store.locks import WriteLocks
from factbook.catalog.store.revisions import SetRevision
from factbook.errors import NotFoundError, no_such
from factbook.storage import Database, Row, Transaction, Write


class StoredSet(NamedTuple):
    """A set in a list of sets."""

    id: str
    item_count: int
    revision: int
    updated_by: str
    updated_at: int


class StoredItem(NamedTuple):
    """A pushed entity; `document` is JSON text, `set` None for an entity outside any set."""

    uid: str
    ref: str
    document: str
    set: str | None
    updated_by: str
    updated_at: int


class PushResult(NamedTuple):
    """Result of a push; `written` is None for a dry run, `grant` what let a member write."""

    plan: WritePlan
    written: WriteResult | None
    grant: str = ""


_SET = "SELECT name, item_count, revision, updated_by, updated_at FROM sets"
_ITEM = (
    f"SELECT e.uid, e.ref, {DOCUMENT}, s.name, e.updated_by, e.updated_at FROM entities e "
    "LEFT JOIN sets s ON s.id = e.set_id"
)


async def replace(
    database: Database,
    name: str,
    wanted: Sequence[Prepared],
    actor: Actor,
    guards: Guards,
    *,
    kept: int,
    dry_run: bool = False,
    write: Write | None = None,
) -> PushResult:
    """Make `wanted` the whole content of a set, keeping `kept` revisions of it.

    Raises ConflictError or PreconditionFailedError; in that case, as in a dry run, nothing is
    written.
    """

    held = WriteLocks({locks.owner(name, ""): dry_run}, guards.owned)

    def work(transaction: Transaction) -> PushResult:
        held.begin(transaction)
        plan = diff.replacement(transaction, name, wanted, guards)
        if dry_run:
            return PushResult(plan, None)
        written = apply.apply(transaction, plan, actor, held, kept=kept)
        return PushResult(plan, written, held.end(transaction))

    return await (write or database.write)(work)


async def put_one(
    database: Database,
    name: str | None,
    item: Prepared,
    actor: Actor,
    guards: Guards,
    rules: PushRules,
    *,
    kept: int,
    write: Write | None = None,
) -> PushResult:
    """Add or update one entity in a set, or outside any set if `name` is None.

    Raises PayloadTooLargeError if the set is full, and the errors of `replace`.
    """

    held = WriteLocks({locks.owner(name, item.ref): False}, guards.owned)

    def work(transaction: Transaction) -> PushResult:
        held.begin(transaction)
        plan = diff.addition(transaction, name, [item], guards)
        if plan.set is not None and plan.changes["added"]:
            sets.check_size(plan.set.item_count + 1, rules)
        written = apply.apply(transaction, plan, actor, held, kept=kept)
        return PushResult(plan, written, held.end(transaction))

    return await (write or database.write)(work)


async def remove_one(
    database: Database,
    uid: str,
    actor: Actor,
    *,
    kept: int,
    narrowing: Narrowing | None = None,
    write: Write | None = None,
) -> PushResult | None:
    """Remove one entity, in a set or not; None if there is none.

    Raises NotAllowedError for one outside of the narrowing of the token.
    """

    held = WriteLocks({})

    def work(transaction: Transaction) -> PushResult | None:
        held.begin(transaction)
        plan = diff.removal(transaction, uid, narrowing)
        if plan is None:
            return None
        # It may have gone to another set until its own is locked.
        held.require({locks.owner(plan.set and plan.set.name, item.ref) for item in plan.removed})
        return PushResult(plan, apply.apply(transaction, plan, actor, held, kept=kept))

    return await (write or database.write)(work)


async def restore(
    database: Database,
    name: str,
    number: int,
    actor: Actor,
    guards: Guards,
    rules: PushRules,
    *,
    kept: int,
    write: Write | None = None,
) -> tuple[PreparedPush, PushResult]:
    """Restore the content of a set after revision `number`, as a new revision.

    Raises NotFoundError if that revision is not kept, InvalidItemsError if the rules have become
    stricter since, and the errors of `replace`.
    """

    held = WriteLocks({locks.owner(name, ""): False}, guards.owned)

    def work(transaction: Transaction) -> tuple[PreparedPush, PushResult]:
        held.begin(transaction)
        target = diff.set_row(transaction, name)
        documents = revisions.documents_at(transaction, target, number)
        with revisions.uncited(number):
            push = sets.prepare([sets.raw(document) for document in documents], name, rules)
            plan = diff.replacement(transaction, name, push.items, guards)
        written = apply.apply(transaction, plan, actor, held, kept=kept, restored=number)
        return push, PushResult(plan, written, held.end(transaction))

    return await (write or database.write)(work)


async def summaries(database: Database) -> list[StoredSet]:
    """Every set that has items, by name."""
    rows = await database.all(f"{_SET} WHERE item_count > 0 ORDER BY name")
    return [StoredSet(*row) for row in rows]


async def namespaces(database: Database, prefix: str) -> dict[str, list[str]]:
    """The namespaces of the entities of each set whose name begins so."""
    rows = await database.all(
        "SELECT DISTINCT s.name, e.namespace FROM sets s JOIN entities e ON e.set_id = s.id "
        "WHERE s.name LIKE ? ORDER BY s.name, e.namespace",
        (f"{prefix}%",),
    )
    found: dict[str, list[str]] = {}
    for name, namespace in rows:
        found.setdefault(name, []).append(namespace)
    return found


async def emptied(database: Database, limit: int) -> list[StoredSet]:
    """Empty sets that can still be restored, most recently emptied first."""
    rows = await database.all(
        f"{_SET} WHERE item_count = 0 "
        "AND EXISTS (SELECT 1 FROM revisions r WHERE r.set_id = sets.id) "
        "ORDER BY updated_at DESC, name LIMIT ?",
        (limit,),
    )
    return [StoredSet(*row) for row in rows]


async def summary(database: Database, name: str) -> StoredSet:
    """One set, even if it is empty now; raises NotFoundError for a set that never existed."""
    row = await database.one(f"{_SET} WHERE name = ?", (name,))
    if row is None:
        raise await _no_set(database, name)
    return StoredSet(*row)


async def set_revisions(database: Database, name: str) -> list[SetRevision]:
    """The revisions of a set, newest first, even if it is empty now; raises NotFoundError."""
    row = await database.one("SELECT id FROM sets WHERE name = ?", (name,))
    if row is None:
        raise await _no_set(database, name)
    return await revisions.listed(database, row[0])


async def _no_set(database: Database, name: str) -> NotFoundError:
    rows = await database.all("SELECT name FROM sets WHERE item_count > 0 ORDER BY name")
    return no_such("set", name, [one for (one,) in rows])


# The revision stands in every row, so that a set is read at one moment with one statement; without
# a further item there is one row, without a position.
_CONTENT = (
    f"SELECT s.revision, i.position, e.uid, e.ref, {DOCUMENT}, s.name, e.updated_by, e.updated_at "
    "FROM sets s LEFT JOIN set_items i ON i.set_id = s.id AND i.position > ? "
    "LEFT JOIN entities e ON e.id = i.entity_id "
    "WHERE s.name = ? AND s.item_count > 0 ORDER BY i.position"
)


class SetContentPage(NamedTuple):
    """Items of a set in order; `more` is the position after which the next page begins."""

    revision: int
    items: list[StoredItem]
    more: int | None


class Content(NamedTuple):
    """The whole content of a set, its items in portions."""

    revision: int
    portions: AsyncIterator[list[StoredItem]]


async def page(database: Database, name: str, limit: int, after: int = -1) -> SetContentPage:
    """Up to `limit` items after the position `after`; raises NotFoundError for an unknown set."""
    rows = await database.all(f"{_CONTENT} LIMIT ?", (after, name, limit + 1))
    if not rows:
        raise await _no_set(database, name)
    more = rows[limit - 1][1] if len(rows) > limit else None
    return SetContentPage(rows[0][0], _items(rows[:limit]), more)


async def content(database: Database, name: str) -> Content:
    """Every item of a set, from one snapshot; raises NotFoundError for an unknown set."""
    pages = database.pages(_CONTENT, (-1, name))
    first = await anext(pages, None)
    if first is None:
        raise await _no_set(database, name)

    async def portions() -> AsyncIterator[list[StoredItem]]:
        yield _items(first)
        async for rows in pages:
            yield _items(rows)

    return Content(first[0][0], portions())


def _items(rows: list[Row]) -> list[StoredItem]:
    return [StoredItem(*columns) for _, position, *columns in rows if position is not None]


async def all_items(database: Database) -> AsyncIterator[list[StoredItem]]:
    """Every pushed entity, by reference, in portions."""
    async for rows in database.pages(f"{_ITEM} ORDER BY e.ref"):
        yield [StoredItem(*row) for row in rows]


async def holders(
    database: Database, key: str, external_ids: Collection[str]
) -> list[tuple[str, str, str]]:
    """Entities in sets with these external ids under an annotation: the id, reference and set."""
    if not external_ids:
        return []
    given = {search.text(one): one for one in external_ids}
    rows = await database.all(_HOLDERS, (f"metadata.annotations.{key}".lower(), sorted(given)))
    return [(given[value], ref, name) for value, ref, name in rows]


_HOLDERS = """
SELECT s.value, e.ref, t.name FROM search_keys k JOIN search s ON s.key_id = k.id
JOIN entities e ON e.id = s.entity_id JOIN sets t ON t.id = e.set_id
WHERE k.key = ? AND s.value IN LIST(?)
"""


async def item_by_uid(database: Database, uid: str) -> StoredItem | None:
    """The pushed entity with this uid."""
    row = await database.one(f"{_ITEM} WHERE e.uid = ?", (uid,))
    return StoredItem(*row) if row else None


async def item_by_ref(database: Database, ref: str) -> StoredItem | None:
    """The pushed entity with this canonical reference."""
    row = await database.one(f"{_ITEM} WHERE e.ref = ?", (ref,))
    return StoredItem(*row) if row else None


def sweep(
    transaction: Transaction, kept: int, revisions_before: int, removed_before: int
) -> list[int]:
    """Forget old revisions, and removed entities for good; the ids of those entities."""
    locks.lock_alone(transaction)
    revisions.trim(transaction, kept, revisions_before)
    gone = removed.forget(transaction, removed_before)
    transaction.touch(apply.TOUCHED, gone)
    return gone
