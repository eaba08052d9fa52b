"""The store of what was pushed: users, groups, and who is in which."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.scim.attributes import Resource, TypeName
from factbook.storage import Database, Row, Transaction

_COLUMNS: Final = (
    "id, type, name_key, display_key, external_id, active, document, ref, problem, version, "
    "created_at, changed_at, disabled_ref, disabled_at"
)
# The most users with the same beginning of their names that an answer lists.
_MOST_CALLED: Final = 20
_READ: Final = f"SELECT {_COLUMNS} FROM scim_resources"
_SAVE: Final = f"""
INSERT INTO scim_resources ({_COLUMNS}, is_troubled)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET name_key = excluded.name_key, display_key = excluded.display_key,
    external_id = excluded.external_id, active = excluded.active, document = excluded.document,
    ref = excluded.ref, problem = excluded.problem, version = excluded.version,
    changed_at = excluded.changed_at, disabled_ref = excluded.disabled_ref,
    disabled_at = excluded.disabled_at, is_troubled = excluded.is_troubled
"""
_MEMBERS: Final = """
SELECT m.group_id, r.id, r.type, '' FROM scim_members m
JOIN scim_resources r ON r.id = m.member_id WHERE m.group_id IN LIST(?)
ORDER BY m.group_id, m.member_id
"""
_GROUPS: Final = """
SELECT m.member_id, r.id, r.type, r.document FROM scim_members m
JOIN scim_resources r ON r.id = m.group_id WHERE m.member_id IN LIST(?)
ORDER BY m.member_id, m.group_id
"""


class ScimRow(NamedTuple):
    """A user or group as stored; `ref` is empty while it is not in the catalog.

    `disabled_ref` is the account that its deactivation has disabled, empty if none.
    """

    id: str
    type: TypeName
    name_key: str
    display_key: str
    external_id: str
    active: bool
    document: str
    ref: str
    problem: str
    version: int
    created_at: int
    changed_at: int
    disabled_ref: str = ""
    disabled_at: int = 0

    @property
    def resource(self) -> Resource:
        """The attributes, without the members of a group."""
        found: Resource = msgspec.json.decode(self.document)
        return found

    @property
    def name(self) -> str:
        """The name at the identity provider."""
        return str(self.resource["userName" if self.type == "User" else "displayName"])


class GroupLink(NamedTuple):
    """Member of a group, or group of a member, which is shown with its name."""

    id: str
    type: TypeName
    display: str


class RowCondition(NamedTuple):
    """RowCondition on rows, in SQL, with its parameters."""

    sql: str
    parameters: tuple[Any, ...] = ()


def key(text: object) -> str:
    """The form of a name in which letters do not differ by case."""
    return str(text or "").casefold()


def with_resource(row: ScimRow, resource: Resource) -> ScimRow:
    """The row with other attributes; who was inactive stays so until they say otherwise."""
    display = key(resource.get("displayName"))
    return row._replace(
        name_key=key(resource["userName"]) if row.type == "User" else display,
        display_key=display,
        external_id=resource.get("externalId", ""),
        active=resource.get("active", row.active) is True,
        document=msgspec.json.encode(resource).decode(),
    )


async def find(database: Database, type_: TypeName, id_: str) -> ScimRow | None:
    """The resource of this type with this id."""
    row = await database.one(f"{_READ} WHERE id = ? AND type = ?", (id_, type_))
    return _row(row) if row else None


async def page(
    database: Database, type_: TypeName, where: RowCondition, offset: int, limit: int
) -> tuple[list[ScimRow], int]:
    """Up to `limit` resources in the order of their creation, and the number of all."""
    condition, parameters = f"type = ? AND ({where.sql})", (type_, *where.parameters)
    count = f"SELECT count(*) FROM scim_resources WHERE {condition}"
    [total] = await database.one(count, parameters) or (0,)
    if not limit or offset >= total:
        return [], total
    rows = await database.all(
        f"{_READ} WHERE {condition} ORDER BY created_at, id LIMIT ? OFFSET ?",
        (*parameters, limit, offset),
    )
    return [_row(row) for row in rows], total


async def member_counts(database: Database, groups: Collection[str]) -> dict[str, int]:
    """The number of members of each of these groups that has any."""
    rows = await database.all(
        "SELECT group_id, count(*) FROM scim_members WHERE group_id IN LIST(?) GROUP BY group_id",
        (list(groups),),
    )
    return dict(rows)


async def members(database: Database, groups: Collection[str]) -> dict[str, list[GroupLink]]:
    """The members of each of these groups that has any."""
    return _links(await database.all(_MEMBERS, (list(groups),)))


async def groups_of(database: Database, ids: Collection[str]) -> dict[str, list[GroupLink]]:
    """The groups of each of these that is in any."""
    return _links(await database.all(_GROUPS, (list(ids),)))


def rows_of(transaction: Transaction, ids: Iterable[str]) -> dict[str, ScimRow]:
    """The resources with these ids."""
    rows = transaction.all(f"{_READ} WHERE id IN LIST(?)", (list(ids),))
    return {row[0]: _row(row) for row in rows}


def named(transaction: Transaction, type_: TypeName, name_key: str) -> list[str]:
    """The ids of the resources with this name."""
    return _ids(
        transaction.all(
            "SELECT id FROM scim_resources WHERE type = ? AND name_key = ?", (type_, name_key)
        )
    )


def users_of_subject(transaction: Transaction, subject: str) -> list[ScimRow]:
    """The users with this external id, none for an empty one."""
    rows = transaction.all(f"{_READ} WHERE type = 'User' AND external_id = ?", (subject or None,))
    return [_row(row) for row in rows]


async def refs_of_subject(database: Database, subject: str) -> list[str]:
    """The references of the users with this external id that have one, none for an empty id."""
    rows = await database.all(
        "SELECT ref FROM scim_resources WHERE type = 'User' AND external_id = ? AND ref <> ''",
        (subject or None,),
    )
    return _ids(rows)


async def members_called(database: Database, groups: Collection[str]) -> list[tuple[str, ScimRow]]:
    """The active users in the groups with these names, each with the group's name."""
    prefixed = ", ".join(f"u.{column}" for column in _COLUMNS.split(", "))
    rows = await database.all(
        f"SELECT g.document, {prefixed} FROM scim_resources g "
        "JOIN scim_members m ON m.group_id = g.id JOIN scim_resources u ON u.id = m.member_id "
        "WHERE g.type = 'Group' AND g.name_key IN LIST(?) AND u.type = 'User' AND u.active = 1 "
        "ORDER BY u.name_key, g.name_key",
        ([key(name) for name in groups],),
    )
    found = [(msgspec.json.decode(row[0], type=_Named).display_name, _row(row[1:])) for row in rows]
    return [(group, row) for group, row in found if group in groups]


def users_called(transaction: Transaction, ref: str, name: str) -> list[ScimRow]:
    """The users with this reference, or whose name is this one, whole or before its `@`."""
    name = key(name)
    rows = transaction.all(f"{_READ} WHERE ref = ? AND type = 'User'", (ref,))
    rows += transaction.all(f"{_READ} WHERE type = 'User' AND name_key = ?", (name,))
    # What comes after `@` in the order of characters is `A`.
    rows += transaction.all(
        f"{_READ} WHERE type = 'User' AND name_key >= ? AND name_key < ? LIMIT ?",
        (f"{name}@", f"{name}A", _MOST_CALLED),
    )
    found = {row[0]: _row(row) for row in rows}
    return sorted(found.values(), key=lambda row: row.name_key)


def users_disabled_with(transaction: Transaction, account: str) -> list[ScimRow]:
    """The users whose deactivation has disabled this account."""
    rows = transaction.all(f"{_READ} WHERE disabled_ref = ? AND type = 'User'", (account,))
    return [_row(row) for row in rows]


def user_named(transaction: Transaction, name: str) -> ScimRow | None:
    """The user with this whole name."""
    ids = named(transaction, "User", key(name))
    return rows_of(transaction, ids)[ids[0]] if ids else None


def group_names(transaction: Transaction, users: Collection[str]) -> set[str]:
    """The names of the groups that these users are direct members of."""
    rows = transaction.all(_GROUPS, (list(users),))
    return {one.display for links in _links(rows).values() for one in links}


def holders(transaction: Transaction, refs: Collection[str]) -> dict[str, str]:
    """The id of the resource that has each of these references."""
    rows = transaction.all("SELECT ref, id FROM scim_resources WHERE ref IN LIST(?)", (list(refs),))
    return dict(rows)


def troubled(transaction: Transaction, limit: int, start: str = "") -> list[ScimRow]:
    """Resources with a problem, from an id on and then from the first."""
    after = f"{_READ} WHERE is_troubled = 1 AND id >= ? ORDER BY id LIMIT ?"
    before = f"{_READ} WHERE is_troubled = 1 AND id < ? ORDER BY id LIMIT ?"
    rows = transaction.all(after, (start, limit))
    rows += transaction.all(before, (start, limit - len(rows)))
    return [_row(row) for row in rows]


def problem_count(transaction: Transaction) -> int:
    """The number of resources with a problem."""
    [count] = transaction.one("SELECT count(*) FROM scim_resources WHERE is_troubled = 1") or (0,)
    return int(count)


def shown_count(transaction: Transaction) -> int:
    """The number of resources that are in the catalog."""
    [count] = transaction.one(
        "SELECT count(*) FROM scim_resources WHERE active = 1 AND ref <> ''"
    ) or (0,)
    return int(count)


def shown(transaction: Transaction, after: str, limit: int) -> list[tuple[str, str]]:
    """Ids and references of resources that are in the catalog, after an id."""
    rows = transaction.all(
        "SELECT id, ref FROM scim_resources WHERE active = 1 AND ref <> '' AND id > ? "
        "ORDER BY id LIMIT ?",
        (after, limit),
    )
    return [(str(id_), str(ref)) for id_, ref in rows]


def members_of(transaction: Transaction, groups: Collection[str]) -> list[tuple[str, str]]:
    """Each of these groups with each of its members, as ids."""
    rows = transaction.all(
        "SELECT group_id, member_id FROM scim_members WHERE group_id IN LIST(?)", (list(groups),)
    )
    return [(group, member) for group, member in rows]


def memberships(transaction: Transaction, ids: Collection[str]) -> list[tuple[str, str]]:
    """Each of these with each group that it is in, as ids."""
    rows = transaction.all(
        "SELECT member_id, group_id FROM scim_members WHERE member_id IN LIST(?)", (list(ids),)
    )
    return [(member, group) for member, group in rows]


def save(transaction: Transaction, rows: Sequence[ScimRow]) -> None:
    """Store resources."""
    transaction.many(
        _SAVE, [(*row[:5], int(row.active), *row[6:], int(bool(row.problem))) for row in rows]
    )


def change_members(
    transaction: Transaction, group: str, come: Collection[str], gone: Collection[str]
) -> None:
    """Add members to a group, and remove others."""
    if gone:
        transaction.run(
            "DELETE FROM scim_members WHERE group_id = ? AND member_id IN LIST(?)",
            (group, list(gone)),
        )
    rows = [(group, member) for member in sorted(come)]
    if rows:
        transaction.insert("scim_members", ("group_id", "member_id"), rows)


def delete(transaction: Transaction, id_: str) -> None:
    """Forget a resource, with its members and its memberships."""
    transaction.run("DELETE FROM scim_members WHERE group_id = ?", (id_,))
    transaction.run("DELETE FROM scim_members WHERE member_id = ?", (id_,))
    transaction.run("DELETE FROM scim_resources WHERE id = ?", (id_,))


def _row(row: Row) -> ScimRow:
    return ScimRow._make((*row[:5], bool(row[5]), *row[6:]))


def _ids(rows: Iterable[Row]) -> list[str]:
    return [row[0] for row in rows]


def _links(rows: Iterable[Row]) -> dict[str, list[GroupLink]]:
    found: dict[str, list[GroupLink]] = {}
    for of, id_, type_, document in rows:
        display = msgspec.json.decode(document, type=_Named).display_name if document else ""
        found.setdefault(of, []).append(GroupLink(id_, type_, display))
    return found


class _Named(msgspec.Struct, rename="camel"):
    """The name in the document of a group."""

    display_name: str
