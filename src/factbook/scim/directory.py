"""The directory: users and groups that an identity provider creates, changes and deletes.

Each change is one transaction: the pushed resource, its entities in the catalog, and the account
and tokens of a person who loses access.
"""

import re
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook import invisible
from factbook.audit.trail import Caller
from factbook.auth import group_roles, users
from factbook.auth.group_roles import GroupRules
from factbook.auth.users import ProvisionedEntity, ProvisionedPerson, Revocation
from factbook.catalog import sets
from factbook.catalog.ref import EntityRef
from factbook.catalog.sets import Prepared, PushRules
from factbook.catalog.store import stored_sets
from factbook.catalog.store.stored_sets import Actor, SetChange
from factbook.errors import (
    ConflictError,
    InputError,
    InvalidItemsError,
    NotFoundError,
    PreconditionFailedError,
)
from factbook.importers import records
from factbook.importers.merge import ImportMarks
from factbook.importers.records import ImportPartRecord
from factbook.importers.snapshot import ImportedItem, ReadingProblem, make_entity_name, name_set
from factbook.scim import identity, patch, store
from factbook.scim.patch import PatchOperation
from factbook.scim.protocol import Resource, TypeName
from factbook.scim.store import ScimRow
from factbook.storage import Transaction, Write

ORIGIN: Final = "SCIM"
_VERSION: Final = "backstage.io/v1alpha1"
_SHORT_ID: Final = 8
_LONGEST_NAME: Final = 200
_LONGEST_STRICT_NAME: Final = 63
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._-]+")
_ENDS: Final = "-._"

IMPORTER: Final = "scim"
PART: Final = "people"
SET: Final = name_set(IMPORTER, PART)
_ReadLinks = Callable[[Transaction, Collection[str]], list[tuple[str, str]]]
# Taken names retried with each change.
_TRIED_AGAIN: Final = 100
# Approximate number of missing entities restored with each change.
_BROUGHT_BACK: Final = 1_000
_PAGE_ROWS: Final = 1_000

_MOST_NAMED: Final = 3
_MOST_PROBLEMS: Final = 1_000

_NAMING_ATTRIBUTES: Final = frozenset(
    {
        *("userName", "displayName", "nickName", "name", "formatted", "externalId", "profileUrl"),
        *("emails", "phoneNumbers", "addresses", "value"),
    }
)


def propose_references(type_: TypeName, name: str, id_: str, *, strict: bool) -> list[str]:
    """References to try for the entity, best first.

    A person gets the name before the `@`, as at sign-in, or the whole name if another person has
    that; a group gets its own name. A name without any allowed character becomes the id.
    """
    names = [name.partition("@")[0], name] if type_ == "User" else [name]
    if strict:
        # Only letters, digits and inner `-_.`.
        names = [_FOREIGN.sub("-", text).strip(_ENDS) for text in names]
        allowed = [text[:_LONGEST_STRICT_NAME].strip(_ENDS) for text in names]
    else:
        allowed = [make_entity_name(text) for text in names]
    valid = [text for text in allowed if text] or [f"{type_}-{id_[:_SHORT_ID]}"]
    return list(dict.fromkeys(str(EntityRef.of(type_, "default", text)) for text in valid))


def make_user_item(id_: str, ref: str, resource: Resource, groups: Iterable[str]) -> ImportedItem:
    """The entity of a person; `groups` are references of the person's groups."""
    emails = sorted(resource.get("emails", ()), key=lambda email: email.get("primary") is not True)
    email = next((email["value"] for email in emails if email.get("value")), None)
    profile = _drop_blank_texts(displayName=_choose_display_name(resource), email=email)
    spec = {"profile": profile, "memberOf": sorted(groups)}
    return _make_scim_item(
        "User", id_, ref, _drop_blank_texts(title=profile.get("displayName")), spec
    )


def make_group_item(
    id_: str, ref: str, resource: Resource, children: Iterable[str]
) -> ImportedItem:
    """The entity of a group, with the references of its subgroups."""
    profile = _drop_blank_texts(displayName=resource["displayName"])
    spec = {"type": "team", "profile": profile, "children": sorted(children)}
    return _make_scim_item(
        "Group", id_, ref, _drop_blank_texts(title=profile.get("displayName")), spec
    )


def _make_scim_item(
    type_: TypeName, id_: str, ref: str, metadata: dict[str, str], spec: dict[str, Any]
) -> ImportedItem:
    named = {"name": ref.rpartition("/")[2], **metadata}
    entity = {"apiVersion": _VERSION, "kind": type_, "metadata": named, "spec": spec}
    return ImportedItem(entity, ORIGIN, f"scim/{type_.lower()}/{id_}")


def _choose_display_name(resource: Resource) -> str | None:
    name = resource.get("name", {})
    parts = (name.get("givenName"), name.get("familyName"))
    return (
        resource.get("displayName")
        or name.get("formatted")
        or " ".join(filter(None, parts))
        or None
    )


def _drop_blank_texts(**given: str | None) -> dict[str, str]:
    """The texts that are present and not blank, without invisible characters."""
    texts = {}
    for name, value in given.items():
        visible = invisible.without(value or "")
        printable = "".join(character for character in visible if character.isprintable())
        if text := printable.strip()[:_LONGEST_NAME].strip():
            texts[name] = text
    return texts


class Settlement:
    """Rows touched by a change, and the resulting change of the catalog."""

    def __init__(self, transaction: Transaction, rules: PushRules) -> None:
        self._transaction = transaction
        self._rules = rules
        self._before: dict[str, ScimRow | None] = {}
        self._rows: dict[str, ScimRow | None] = {}
        self._dirty: set[str] = set()

    def put(self, before: ScimRow | None, row: ScimRow) -> ScimRow:
        """Add a new or changed resource; returns the row with its assigned reference."""
        named = self._named(row)
        self._note(named.id, before, named)
        return named

    def remove(self, row: ScimRow) -> None:
        """Delete a resource with its memberships."""
        self._dirty |= self._neighbors(row.id)
        self._note(row.id, row, None)
        store.delete_row(self._transaction, row.id)

    @property
    def removed(self) -> list[str]:
        """The ids of resources that were deleted."""
        return [id_ for id_, row in self._rows.items() if row is None]

    def members(self, group: str, come: Collection[str], gone: Collection[str]) -> None:
        """Add members to a group, and remove others."""
        store.change_group_members(self._transaction, group, come, gone)
        self._dirty |= {group, *come, *gone}

    def users_of(self, groups: Collection[str]) -> list[ScimRow]:
        """Users who changed, joined or left a group with such a name, or whose group was renamed.

        Each row is included as before and as now.
        """
        changed = {id_ for id_, row in self._rows.items() if row != self._before[id_]}
        versions = [row for id_ in changed for row in (self._before[id_], self._rows[id_]) if row]
        named = {row.id for row in versions if row.type == "Group" and row.name in groups}
        ids = self._dirty | {user for _, user in store.list_member_ids(self._transaction, named)}
        noted = (*self._before.values(), *self._rows.values())
        touches = any(row and row.type == "Group" and row.name in groups for row in noted)
        others = store.get_rows(self._transaction, ids - changed) if touches else {}
        return [row for row in (*versions, *others.values()) if row.type == "User"]

    def change(self) -> SetChange:
        """The resulting change of the catalog; stores the rows."""
        self._miss()
        # From a random start: rows that stay in trouble would otherwise starve the others.
        start = str(uuid.uuid4())
        for troubled in store.list_troubled(self._transaction, _TRIED_AGAIN, start):
            if troubled.id not in self._rows:
                self.put(troubled, troubled)
        self._yield_to_others()
        changed = [row for id_, row in self._rows.items() if row and row != self._before[id_]]
        store.save_rows(self._transaction, changed)
        return self._set_change()

    def _miss(self) -> None:
        """Find entities lost from the set by a deletion, restore or push, to restore them."""
        if stored_sets.count_items(self._transaction, SET) >= store.count_in_catalog(
            self._transaction
        ):
            return
        after, missing = "", set[str]()
        while len(missing) < _BROUGHT_BACK and (
            page := store.list_in_catalog(self._transaction, after, _PAGE_ROWS)
        ):
            there = stored_sets.filter_owned(self._transaction, SET, [ref for _, ref in page])
            missing |= {id_ for id_, ref in page if ref not in there}
            after = page[-1][0]
        self._dirty |= missing

    def _note(self, id_: str, before: ScimRow | None, row: ScimRow | None) -> None:
        self._before.setdefault(id_, before)
        self._rows[id_] = row
        self._dirty.add(id_)

    def _named(self, row: ScimRow) -> ScimRow:
        """The row with the best free reference, and the problem if that is not the first choice."""
        wanted = propose_references(row.type, row.name, row.id, strict=self._rules.strict_names)
        taken = store.find_ids_by_ref(self._transaction, wanted)
        free = [ref for ref in wanted if taken.get(ref, row.id) == row.id]
        ref = row.ref if row.ref in free else free[0] if free else ""
        problem = ""
        if ref != wanted[0]:
            now = f"this one is {ref}" if ref else "this one is not in the catalog"
            problem = f'{row.type} "{row.name}": {wanted[0]} is another one already, {now}'
        return row._replace(ref=ref, problem=problem)

    def _neighbors(self, id_: str) -> set[str]:
        """Ids of rows that show this row's reference: members of a group, and its parent groups."""
        inside = {member for _, member in store.list_member_ids(self._transaction, [id_])}
        return inside | {group for _, group in store.list_group_ids(self._transaction, [id_])}

    def _yield_to_others(self) -> None:
        """Give up references that other sets own.

        Rows that show a changed reference are examined in turn, each once.
        """
        seen = set[str]()
        while fresh := self._dirty - seen:
            seen |= fresh
            for id_, row in store.get_rows(self._transaction, fresh - self._rows.keys()).items():
                self._note(id_, row, row)
            self._give_up(fresh)
            for id_ in fresh & self._rows.keys():
                if _get_ref(self._rows[id_]) != _get_ref(self._before[id_]):
                    self._dirty |= self._neighbors(id_)

    def _give_up(self, ids: Iterable[str]) -> None:
        """Remove references that others own from these rows."""
        mine = {row.ref: row for id_ in ids if (row := self._rows.get(id_)) and row.ref}
        owners = stored_sets.find_foreign_owners(self._transaction, SET, mine)
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
        """The entities of resources, with references to groups and children."""
        users, groups = list[ScimRow](), list[ScimRow]()
        for row in shown:
            (users if row.type == "User" else groups).append(row)
        around = self._links(store.list_group_ids, users)
        inside = self._links(store.list_member_ids, groups)
        items = [
            *(make_group_item(row.id, row.ref, row.resource, inside[row.id]) for row in groups),
            *(make_user_item(row.id, row.ref, row.resource, around[row.id]) for row in users),
        ]
        marks = ImportMarks(self._rules)
        return [self._one(marks, item) for item in items]

    def _links(self, read: _ReadLinks, rows: list[ScimRow]) -> Mapping[str, list[str]]:
        """The references of each row's parent groups or subgroups."""
        found: dict[str, list[str]] = {row.id: [] for row in rows}
        pairs = read(self._transaction, list(found)) if rows else []
        others = {other for _, other in pairs}
        known = {id_: row for id_, row in self._rows.items() if id_ in others}
        known |= store.get_rows(self._transaction, others - known.keys())
        for id_, other in pairs:
            row = known.get(other)
            if row and row.type == "Group" and row.ref:
                found[id_].append(row.ref)
        return found

    def _one(self, marks: ImportMarks, item: ImportedItem) -> Prepared:
        raw = msgspec.Raw(msgspec.json.encode(marks.marked(item)))
        try:
            [prepared] = sets.prepare_item(raw, SET, self._rules).items
        except InvalidItemsError as error:
            raise InputError(error.message, scimType="invalidValue") from None
        return prepared


def _get_ref(row: ScimRow | None) -> str:
    return row.ref if row else ""


class DirectoryTarget(NamedTuple):
    """Catalog and accounts that a directory changes; `kept` is the number of revisions kept."""

    write: Write
    rules: PushRules
    kept: int
    groups: GroupRules
    actor: Actor


class DirectoryChange(NamedTuple):
    """Result of a change: the resource, and the effects on members and accounts."""

    row: ScimRow
    added: int = 0
    removed: int = 0
    disabled: str = ""
    enabled: str = ""
    left: str = ""


class ScimDirectory:
    """Writer of users and groups, for one call of the identity provider."""

    def __init__(self, target: DirectoryTarget) -> None:
        self._target = target
        self._now = target.actor.now

    async def create(self, type_: TypeName, resource: Resource) -> DirectoryChange:
        """Create a resource; raises ConflictError for an existing user name."""
        id_ = str(uuid.uuid4())

        def work(transaction: Transaction, settlement: Settlement) -> DirectoryChange:
            blank = ScimRow(id_, type_, "", "", "", True, "{}", "", "", 0, self._now, 0)
            whole = _keep_active(resource, blank)
            return self._put(transaction, settlement, None, blank, whole)

        return await self._change(work)

    async def replace(
        self, type_: TypeName, id_: str, resource: Resource, if_match: Collection[int] | None
    ) -> DirectoryChange:
        """Replace the attributes of a resource; raises the errors of `patch`."""

        def work(transaction: Transaction, settlement: Settlement) -> DirectoryChange:
            row = _require_resource(transaction, type_, id_, if_match)
            whole = _keep_active(resource, row)
            return self._put(transaction, settlement, row, row, whole)

        return await self._change(work)

    async def patch(
        self,
        type_: TypeName,
        id_: str,
        changes: Sequence[PatchOperation],
        if_match: Collection[int] | None,
    ) -> DirectoryChange:
        """Change some attributes of a resource.

        Raises NotFoundError, PreconditionFailedError for another version, ConflictError for an
        existing user name and for the only administrator, InputError for invalid changes.
        """

        def work(transaction: Transaction, settlement: Settlement) -> DirectoryChange:
            row = _require_resource(transaction, type_, id_, if_match)
            resource = row.resource
            if type_ == "Group":
                members = store.list_member_ids(transaction, [id_])
                resource["members"] = [{"value": member} for _, member in members]
            resource = patch.apply_operations(type_, resource, changes)
            return self._put(transaction, settlement, row, row, resource)

        return await self._change(work)

    async def delete(
        self, type_: TypeName, id_: str, if_match: Collection[int] | None
    ) -> DirectoryChange:
        """Delete a resource; a person loses access. Raises the errors of `patch`."""

        def work(transaction: Transaction, settlement: Settlement) -> DirectoryChange:
            row = _require_resource(transaction, type_, id_, if_match)
            lost = self._revoked(transaction, [], row, row) if type_ == "User" else Revocation()
            settlement.remove(row)
            return DirectoryChange(row, disabled=lost.disabled, left=lost.left)

        return await self._change(work)

    async def _change(
        self, work: Callable[[Transaction, Settlement], DirectoryChange]
    ) -> DirectoryChange:
        target = self._target

        def decide(transaction: Transaction) -> tuple[SetChange, DirectoryChange]:
            if target.groups.roles:
                group_roles.lock_role_changes(transaction)
            settlement = Settlement(transaction, target.rules)
            result = work(transaction, settlement)
            change = settlement.change()
            self._settle_roles(transaction, settlement)
            for id_ in settlement.removed:
                users.unlink_account(transaction, id_)
            records.replace_part_record(transaction, _make_part_record(transaction, self._now))
            return change, result

        return await stored_sets.change_set(
            target.write, SET, decide, target.actor, target.rules, kept=target.kept
        )

    def _settle_roles(self, transaction: Transaction, settlement: Settlement) -> None:
        """Update the roles of users affected by the change."""
        groups, caller = (
            self._target.groups,
            Caller(self._target.actor.ref, self._now, grant="token"),
        )
        if groups.roles:
            users = settlement.users_of(groups.roles)
            identity.settle_account_roles(transaction, users, groups, caller)

    def _put(
        self,
        transaction: Transaction,
        settlement: Settlement,
        before: ScimRow | None,
        row: ScimRow,
        resource: Resource,
    ) -> DirectoryChange:
        own = {name: value for name, value in resource.items() if name != "members"}
        row = store.replace_attributes(row, own)
        if row.type == "User":
            namesakes = set(store.find_ids_by_name(transaction, "User", row.name_key))
            if namesakes - {row.id}:
                told = f'There is a user "{row.name}" already; nothing was written.'
                raise ConflictError(told, scimType="uniqueness")
        come, gone = _compare_members(transaction, row, resource.get("members", ()))
        if before is None or store.replace_attributes(before, own) != before or come or gone:
            row = row._replace(version=row.version + 1, changed_at=self._now)
        row = settlement.put(before, row)
        if come or gone:
            settlement.members(row.id, come, gone)
        result = DirectoryChange(row, len(come), len(gone))
        return self._with_access(transaction, settlement, before, result)

    def _with_access(
        self,
        transaction: Transaction,
        settlement: Settlement,
        before: ScimRow | None,
        change: DirectoryChange,
    ) -> DirectoryChange:
        """The change with its effect on the person's account."""
        row, was_active = change.row, before is None or before.active
        if row.type != "User":
            return change
        accounts = self._renamed(transaction, before, row)
        if row.active and was_active:
            return change
        if row.active:
            back = [
                ref
                for ref in row.disabled_ref.split()
                if users.reactivate_account(transaction, ref, row.disabled_at)
            ]
            row = settlement.put(before, row._replace(disabled_ref="", disabled_at=0))
            return change._replace(row=row, enabled=" ".join(back))
        lost = self._revoked(transaction, accounts, before, row)
        if lost.disabled:
            marked = row._replace(disabled_ref=lost.disabled, disabled_at=self._now)
            row = settlement.put(before, marked)
        return change._replace(row=row, disabled=lost.disabled, left=lost.left)

    def _renamed(self, transaction: Transaction, before: ScimRow | None, row: ScimRow) -> list[str]:
        """The accounts that matched the row before the change; they follow a rename."""
        accounts = self._accounts(transaction, before) if before and before != row else []
        if before and before.name_key != row.name_key:
            for account in accounts:
                users.rename_login(transaction, account, before.name, row.name)
        return accounts

    def _revoked(
        self,
        transaction: Transaction,
        accounts: list[str],
        before: ScimRow | None,
        row: ScimRow,
    ) -> Revocation:
        accounts = accounts or self._accounts(transaction, row)
        # A row's new name may turn out to be another person's.
        held = before.ref if before else ""
        is_own = held in stored_sets.filter_owned(transaction, SET, [held])
        entity = ProvisionedEntity(held if is_own else row.ref, is_own)
        return users.deactivate_accounts(transaction, accounts, entity, self._now)

    def _accounts(self, transaction: Transaction, row: ScimRow) -> list[str]:
        person = ProvisionedPerson(row.id, self._target.groups.issuer, row.external_id, row.name)
        return users.list_accounts_to_revoke(transaction, person)


def _keep_active(resource: Resource, row: ScimRow) -> Resource:
    """The attributes of a user; an omitted `active` stays as before."""
    return {"active": row.active, **resource} if row.type == "User" else resource


def _require_resource(
    transaction: Transaction, type_: TypeName, id_: str, if_match: Collection[int] | None
) -> ScimRow:
    row = store.get_rows(transaction, [id_]).get(id_)
    if row is None or row.type != type_:
        raise make_not_found_error(type_, id_)
    if if_match is not None and row.version not in if_match:
        raise PreconditionFailedError(
            f"The resource is at version {row.version}, not at the one that If-Match names; "
            "nothing was written."
        )
    return row


def make_not_found_error(type_: TypeName, id_: str) -> NotFoundError:
    """The error for a missing resource."""
    return NotFoundError(f"There is no {type_} {id_[:80]}.")


def _compare_members(
    transaction: Transaction, row: ScimRow, members: Sequence[Resource]
) -> tuple[set[str], set[str]]:
    """The members to add to a group, and to remove; raises InputError for unknown ones."""
    if row.type != "Group":
        return set(), set()
    wanted = {str(one.get("value", "")) for one in members}
    there = {member for _, member in store.list_member_ids(transaction, [row.id])}
    come = wanted - there
    unknown = sorted(come - store.get_rows(transaction, come).keys()) if come else []
    if unknown:
        more = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
        named = ", ".join(f'"{one[:80]}"' for one in unknown[:_MOST_NAMED])
        told = f"There are no users or groups {named}{more} to be members; nothing was written."
        raise InputError(told, scimType="invalidValue")
    if row.id in wanted:
        raise InputError("A group cannot be its own member.", scimType="invalidValue")
    return come, there - wanted


def _make_part_record(transaction: Transaction, now: int) -> ImportPartRecord:
    """The record of the directory for the imports page."""
    rows = store.list_troubled(transaction, _MOST_PROBLEMS)
    problems = [ReadingProblem(ORIGIN, row.problem) for row in rows]
    count = store.count_troubled(transaction)
    shown = store.count_in_catalog(transaction)
    return ImportPartRecord(IMPORTER, PART, "complete", now, now, shown, count, problems)


def delete_scim_users(
    transaction: Transaction, ref: str, linked: Sequence[str], subject: str
) -> list[ScimRow]:
    """Delete the SCIM users of this person; returns them.

    Raises ConflictError if one is active, as the identity provider would push the user again, or
    if several users have the person's name.
    """
    found = _find_scim_users(transaction, ref, linked, subject)
    for row in found:
        if row.active:
            raise ConflictError(
                f"The SCIM user {row.name} is active. Remove the person at the identity provider "
                "first, or it pushes the data again."
            )
        store.delete_row(transaction, row.id)
    return found


def find_naming_texts(value: Any) -> Iterator[str]:
    """The texts in a user's attributes that name the person."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in _NAMING_ATTRIBUTES:
                yield from find_naming_texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from find_naming_texts(inner)
    elif isinstance(value, str):
        yield value


def _find_scim_users(
    transaction: Transaction, ref: str, linked: Sequence[str], subject: str
) -> list[ScimRow]:
    proven = list(store.get_rows(transaction, linked).values())
    proven += store.find_users_by_subject(transaction, subject)
    proven += store.find_users_disabled_with(transaction, ref)
    called = store.find_users_by_name(transaction, ref, ref.removeprefix(users.PREFIX))
    proven += [row for row in called if row.ref == ref]
    if proven:
        return list({row.id: row for row in proven}.values())
    named = [
        row
        for row in called
        if not row.ref and propose_references("User", row.name, row.id, strict=False)[0] == ref
    ]
    if len(named) > 1:
        names = ", ".join(row.name for row in named)
        raise ConflictError(
            f"Several inactive SCIM users have this name: {names}. Delete the person's at the "
            "identity provider first."
        )
    return named
