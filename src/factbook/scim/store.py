"""The store of pushed users and groups and their members, and filters as SQL conditions."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.scim import protocol
from factbook.scim.protocol import Equals, Resource, ScimFilter, TypeName
from factbook.storage import Database, Row, Transaction

_COLUMNS: Final = (
    "id, type, name_key, display_key, external_id, active, document, ref, problem, version, "
    "created_at, changed_at, disabled_ref, disabled_at"
)
# Most users with the same beginning of the name in one answer.
_MOST_CALLED: Final = 20
_IN_GROUP: Final = "id IN (SELECT group_id FROM scim_members WHERE member_id = ?)"
_HAS_GROUP: Final = "id IN (SELECT member_id FROM scim_members WHERE group_id = ?)"
_OFFERED: Final = {
    "User": "userName, externalId, displayName, id, active, groups.value",
    "Group": "displayName, externalId, id, members.value",
}


class ScimRow(NamedTuple):
    """A stored user or group; `ref` is empty while the resource is not in the catalog.

    `disabled_ref` is the account disabled by deactivation, empty if none.
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
    """Member of a group, or group of a member, with its display name."""

    id: str
    type: TypeName
    display: str


class RowCondition(NamedTuple):
    """SQL condition on rows, with its parameters."""

    sql: str
    parameters: tuple[Any, ...] = ()


def fold_name(text: object) -> str:
    """The name folded for case-insensitive comparison."""
    return str(text or "").casefold()


def replace_attributes(row: ScimRow, resource: Resource) -> ScimRow:
    """The row with new attributes; an inactive user stays inactive unless `active` is set."""
    display = fold_name(resource.get("displayName"))
    return row._replace(
        name_key=fold_name(resource["userName"]) if row.type == "User" else display,
        display_key=display,
        external_id=resource.get("externalId", ""),
        active=resource.get("active", row.active) is True,
        document=msgspec.json.encode(resource).decode(),
    )


async def find_resource(database: Database, type_: TypeName, id_: str) -> ScimRow | None:
    """The resource of this type with this id."""
    row = await database.one(f"{_READ_ROWS} WHERE id = ? AND type = ?", (id_, type_))
    return _parse_row(row) if row else None


async def list_rows(
    database: Database, type_: TypeName, where: RowCondition, offset: int, limit: int
) -> tuple[list[ScimRow], int]:
    """Up to `limit` resources in the order of their creation, and the number of all."""
    condition, parameters = f"type = ? AND ({where.sql})", (type_, *where.parameters)
    count = f"SELECT count(*) FROM scim_resources WHERE {condition}"
    [total] = await database.one(count, parameters) or (0,)
    if not limit or offset >= total:
        return [], total
    rows = await database.all(
        f"{_READ_ROWS} WHERE {condition} ORDER BY created_at, id LIMIT ? OFFSET ?",
        (*parameters, limit, offset),
    )
    return [_parse_row(row) for row in rows], total


async def count_members(database: Database, groups: Collection[str]) -> dict[str, int]:
    """The number of members of each of these groups that has any."""
    rows = await database.all(
        "SELECT group_id, count(*) FROM scim_members WHERE group_id IN LIST(?) GROUP BY group_id",
        (list(groups),),
    )
    return dict(rows)


async def list_members(database: Database, groups: Collection[str]) -> dict[str, list[GroupLink]]:
    """The members of each of these groups that has any."""
    return _group_links(await database.all(_READ_MEMBERS, (list(groups),)))


async def list_groups(database: Database, ids: Collection[str]) -> dict[str, list[GroupLink]]:
    """The groups of each of these resources that is in any."""
    return _group_links(await database.all(_READ_GROUPS, (list(ids),)))


def get_rows(transaction: Transaction, ids: Iterable[str]) -> dict[str, ScimRow]:
    """The resources with these ids."""
    rows = transaction.all(f"{_READ_ROWS} WHERE id IN LIST(?)", (list(ids),))
    return {row[0]: _parse_row(row) for row in rows}


def find_ids_by_name(transaction: Transaction, type_: TypeName, name_key: str) -> list[str]:
    """The ids of the resources with this name."""
    return _take_ids(
        transaction.all(
            "SELECT id FROM scim_resources WHERE type = ? AND name_key = ?", (type_, name_key)
        )
    )


def find_users_by_subject(transaction: Transaction, subject: str) -> list[ScimRow]:
    """The users with this external id; none for an empty id."""
    rows = transaction.all(
        f"{_READ_ROWS} WHERE type = 'User' AND external_id = ?", (subject or None,)
    )
    return [_parse_row(row) for row in rows]


async def find_refs_by_subject(database: Database, subject: str) -> list[str]:
    """The references of users with this external id; none for an empty id."""
    rows = await database.all(
        "SELECT ref FROM scim_resources WHERE type = 'User' AND external_id = ? AND ref <> ''",
        (subject or None,),
    )
    return _take_ids(rows)


async def list_active_members(
    database: Database, groups: Collection[str]
) -> list[tuple[str, ScimRow]]:
    """The active users in the groups with these names, each with the group's name."""
    prefixed = ", ".join(f"u.{column}" for column in _COLUMNS.split(", "))
    rows = await database.all(
        f"SELECT g.document, {prefixed} FROM scim_resources g "
        "JOIN scim_members m ON m.group_id = g.id JOIN scim_resources u ON u.id = m.member_id "
        "WHERE g.type = 'Group' AND g.name_key IN LIST(?) AND u.type = 'User' AND u.active = 1 "
        "ORDER BY u.name_key, g.name_key",
        ([fold_name(name) for name in groups],),
    )
    found = [
        (msgspec.json.decode(row[0], type=_NamedGroup).display_name, _parse_row(row[1:]))
        for row in rows
    ]
    return [(group, row) for group, row in found if group in groups]


def find_users_by_name(transaction: Transaction, ref: str, name: str) -> list[ScimRow]:
    """The users with this reference, or with this name, in full or before the `@`."""
    name = fold_name(name)
    rows = transaction.all(f"{_READ_ROWS} WHERE ref = ? AND type = 'User'", (ref,))
    rows += transaction.all(f"{_READ_ROWS} WHERE type = 'User' AND name_key = ?", (name,))
    # `A` is the character after `@`.
    rows += transaction.all(
        f"{_READ_ROWS} WHERE type = 'User' AND name_key >= ? AND name_key < ? LIMIT ?",
        (f"{name}@", f"{name}A", _MOST_CALLED),
    )
    found = {row[0]: _parse_row(row) for row in rows}
    return sorted(found.values(), key=lambda row: row.name_key)


def find_users_disabled_with(transaction: Transaction, account: str) -> list[ScimRow]:
    """The users whose deactivation has disabled this account."""
    rows = transaction.all(f"{_READ_ROWS} WHERE disabled_ref = ? AND type = 'User'", (account,))
    return [_parse_row(row) for row in rows]


def find_user_by_name(transaction: Transaction, name: str) -> ScimRow | None:
    """The user with this full name."""
    ids = find_ids_by_name(transaction, "User", fold_name(name))
    return get_rows(transaction, ids)[ids[0]] if ids else None


def list_group_names(transaction: Transaction, users: Collection[str]) -> set[str]:
    """The names of the groups that these users are direct members of."""
    rows = transaction.all(_READ_GROUPS, (list(users),))
    return {one.display for links in _group_links(rows).values() for one in links}


def find_ids_by_ref(transaction: Transaction, refs: Collection[str]) -> dict[str, str]:
    """The id of the resource that has each of these references."""
    rows = transaction.all("SELECT ref, id FROM scim_resources WHERE ref IN LIST(?)", (list(refs),))
    return dict(rows)


def list_troubled(transaction: Transaction, limit: int, start: str = "") -> list[ScimRow]:
    """Resources with a problem, starting at an id and wrapping around."""
    after = f"{_READ_ROWS} WHERE is_troubled = 1 AND id >= ? ORDER BY id LIMIT ?"
    before = f"{_READ_ROWS} WHERE is_troubled = 1 AND id < ? ORDER BY id LIMIT ?"
    rows = transaction.all(after, (start, limit))
    rows += transaction.all(before, (start, limit - len(rows)))
    return [_parse_row(row) for row in rows]


def count_troubled(transaction: Transaction) -> int:
    """The number of resources with a problem."""
    [count] = transaction.one("SELECT count(*) FROM scim_resources WHERE is_troubled = 1") or (0,)
    return int(count)


def count_in_catalog(transaction: Transaction) -> int:
    """The number of resources that are in the catalog."""
    [count] = transaction.one(
        "SELECT count(*) FROM scim_resources WHERE active = 1 AND ref <> ''"
    ) or (0,)
    return int(count)


def list_in_catalog(transaction: Transaction, after: str, limit: int) -> list[tuple[str, str]]:
    """Ids and references of resources that are in the catalog, after an id."""
    rows = transaction.all(
        "SELECT id, ref FROM scim_resources WHERE active = 1 AND ref <> '' AND id > ? "
        "ORDER BY id LIMIT ?",
        (after, limit),
    )
    return [(str(id_), str(ref)) for id_, ref in rows]


def list_member_ids(transaction: Transaction, groups: Collection[str]) -> list[tuple[str, str]]:
    """Each of these groups with each of its members, as ids."""
    rows = transaction.all(
        "SELECT group_id, member_id FROM scim_members WHERE group_id IN LIST(?)", (list(groups),)
    )
    return [(group, member) for group, member in rows]


def list_group_ids(transaction: Transaction, ids: Collection[str]) -> list[tuple[str, str]]:
    """Pairs of resource id and the id of a group that contains the resource."""
    rows = transaction.all(
        "SELECT member_id, group_id FROM scim_members WHERE member_id IN LIST(?)", (list(ids),)
    )
    return [(member, group) for member, group in rows]


def save_rows(transaction: Transaction, rows: Sequence[ScimRow]) -> None:
    """Store resources."""
    transaction.many(
        _SAVE_ROW, [(*row[:5], int(row.active), *row[6:], int(bool(row.problem))) for row in rows]
    )


def change_group_members(
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


def delete_row(transaction: Transaction, id_: str) -> None:
    """Delete a resource, with its members and memberships."""
    transaction.run("DELETE FROM scim_members WHERE group_id = ?", (id_,))
    transaction.run("DELETE FROM scim_members WHERE member_id = ?", (id_,))
    transaction.run("DELETE FROM scim_resources WHERE id = ?", (id_,))


def _parse_row(row: Row) -> ScimRow:
    return ScimRow._make((*row[:5], bool(row[5]), *row[6:]))


def _take_ids(rows: Iterable[Row]) -> list[str]:
    return [row[0] for row in rows]


def _group_links(rows: Iterable[Row]) -> dict[str, list[GroupLink]]:
    found: dict[str, list[GroupLink]] = {}
    for of, id_, type_, document in rows:
        display = msgspec.json.decode(document, type=_NamedGroup).display_name if document else ""
        found.setdefault(of, []).append(GroupLink(id_, type_, display))
    return found


class _NamedGroup(msgspec.Struct, rename="camel"):
    """The name in a group document."""

    display_name: str


EVERY_ROW: Final = RowCondition("1 = 1")


_NO_ROW: Final = RowCondition("1 = 0")


def build_condition(type_: TypeName, filter_: ScimFilter) -> RowCondition:
    """The condition for a filter; raises InputError for an attribute that can't be searched."""
    if isinstance(filter_, Equals):
        return _build_comparison(type_, filter_)
    word = " AND " if isinstance(filter_, protocol.Both) else " OR "
    found = [build_condition(type_, each) for each in filter_.conditions]
    text = word.join(f"({one.sql})" for one in found)
    return RowCondition(text, tuple(value for one in found for value in one.parameters))


def _build_comparison(type_: TypeName, filter_: Equals) -> RowCondition:
    name, value = protocol.strip_schema(type_, filter_.attribute).lower(), filter_.value
    if name == "active" and type_ == "User":
        return RowCondition("active = ?", (int(str(value).lower() == "true"),))
    columns: dict[str, tuple[str, Any]] = {
        "id": ("id = ?", value),
        "externalid": ("external_id = ?", value),
        "displayname": ("display_key = ?", fold_name(value)),
    }
    if type_ == "User":
        columns |= {
            "username": ("name_key = ?", fold_name(value)),
            "groups": (_HAS_GROUP, value),
            "groups.value": (_HAS_GROUP, value),
        }
    else:
        columns |= {"members": (_IN_GROUP, value), "members.value": (_IN_GROUP, value)}
    if name not in columns:
        named = f"{type_}s are found by {_OFFERED[type_]}; {filter_.attribute[:80]} is not offered."
        raise protocol.make_filter_error(named)
    sql, wanted = columns[name]
    # Columns store a missing value as an empty text.
    return RowCondition(sql, (wanted,)) if isinstance(wanted, str) and wanted else _NO_ROW


_READ_ROWS: Final = f"SELECT {_COLUMNS} FROM scim_resources"

_SAVE_ROW: Final = f"""
INSERT INTO scim_resources ({_COLUMNS}, is_troubled)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET name_key = excluded.name_key, display_key = excluded.display_key,
    external_id = excluded.external_id, active = excluded.active, document = excluded.document,
    ref = excluded.ref, problem = excluded.problem, version = excluded.version,
    changed_at = excluded.changed_at, disabled_ref = excluded.disabled_ref,
    disabled_at = excluded.disabled_at, is_troubled = excluded.is_troubled
"""

_READ_MEMBERS: Final = """
SELECT m.group_id, r.id, r.type, '' FROM scim_members m
JOIN scim_resources r ON r.id = m.member_id WHERE m.group_id IN LIST(?)
ORDER BY m.group_id, m.member_id
"""

_READ_GROUPS: Final = """
SELECT m.member_id, r.id, r.type, r.document FROM scim_members m
JOIN scim_resources r ON r.id = m.group_id WHERE m.member_id IN LIST(?)
ORDER BY m.member_id, m.group_id
"""
