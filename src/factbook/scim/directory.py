"""The directory: resources that an identity provider makes, changes and deletes.

Each change is one transaction: what was pushed, the entities of it in the catalog, and the account
and the tokens of a person who loses access.
"""

import uuid
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

from factbook.audit.trail import Caller
from factbook.auth import group_roles, provider_accounts
from factbook.auth.group_roles import GroupRules
from factbook.auth.provider_accounts import ProvisionedEntity, ProvisionedPerson, Revocation
from factbook.catalog.push_rules import PushRules
from factbook.catalog.store import set_changes
from factbook.catalog.store.apply import Actor
from factbook.catalog.store.set_changes import SetChange
from factbook.errors import ConflictError, InputError, NotFoundError, PreconditionFailedError
from factbook.importers import part_store
from factbook.importers.part_store import ImportPartRecord
from factbook.importers.snapshot import ReadingProblem
from factbook.scim import entities, patch, role_groups, store
from factbook.scim.attributes import Resource, TypeName
from factbook.scim.patch import PatchOperation
from factbook.scim.settlement import IMPORTER, PART, SET, Settlement
from factbook.scim.store import ScimRow
from factbook.storage import Transaction, Write

_MOST_NAMED: Final = 3
_MOST_PROBLEMS: Final = 1_000


class DirectoryTarget(NamedTuple):
    """Catalog and accounts that a directory changes; `kept` revisions of its set stay."""

    write: Write
    rules: PushRules
    kept: int
    groups: GroupRules
    actor: Actor


class DirectoryChange(NamedTuple):
    """Result of a change: the resource, and what it meant for members and accounts."""

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
        """Make a resource; raises ConflictError for a user's name that there is."""
        id_ = str(uuid.uuid4())

        def work(transaction: Transaction, settlement: Settlement) -> DirectoryChange:
            blank = ScimRow(id_, type_, "", "", "", True, "{}", "", "", 0, self._now, 0)
            whole = _with_active(resource, blank)
            return self._put(transaction, settlement, None, blank, whole)

        return await self._change(work)

    async def replace(
        self, type_: TypeName, id_: str, resource: Resource, if_match: Collection[int] | None
    ) -> DirectoryChange:
        """Replace the attributes of a resource; raises the errors of `patch`."""

        def work(transaction: Transaction, settlement: Settlement) -> DirectoryChange:
            row = _existing(transaction, type_, id_, if_match)
            whole = _with_active(resource, row)
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

        Raises NotFoundError, PreconditionFailedError for another version, ConflictError for a
        user's name that there is and for the only administrator, InputError for what is not valid.
        """

        def work(transaction: Transaction, settlement: Settlement) -> DirectoryChange:
            row = _existing(transaction, type_, id_, if_match)
            resource = row.resource
            if type_ == "Group":
                members = store.members_of(transaction, [id_])
                resource["members"] = [{"value": member} for _, member in members]
            resource = patch.changed(type_, resource, changes)
            return self._put(transaction, settlement, row, row, resource)

        return await self._change(work)

    async def delete(
        self, type_: TypeName, id_: str, if_match: Collection[int] | None
    ) -> DirectoryChange:
        """Delete a resource; a person loses access. Raises the errors of `patch`."""

        def work(transaction: Transaction, settlement: Settlement) -> DirectoryChange:
            row = _existing(transaction, type_, id_, if_match)
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
                group_roles.lock(transaction)
            settlement = Settlement(transaction, target.rules)
            result = work(transaction, settlement)
            change = settlement.change()
            self._settle_roles(transaction, settlement)
            for id_ in settlement.removed:
                provider_accounts.unlink(transaction, id_)
            part_store.replace(transaction, _part_record(transaction, self._now))
            return change, result

        return await set_changes.change(
            target.write, SET, decide, target.actor, target.rules, kept=target.kept
        )

    def _settle_roles(self, transaction: Transaction, settlement: Settlement) -> None:
        """Give the roles of groups to those whom the change concerns."""
        groups, caller = (
            self._target.groups,
            Caller(self._target.actor.ref, self._now, grant="token"),
        )
        if groups.roles:
            users = settlement.users_of(groups.roles)
            role_groups.settle_accounts(transaction, users, groups, caller)

    def _put(
        self,
        transaction: Transaction,
        settlement: Settlement,
        before: ScimRow | None,
        row: ScimRow,
        resource: Resource,
    ) -> DirectoryChange:
        own = {name: value for name, value in resource.items() if name != "members"}
        row = store.with_resource(row, own)
        if row.type == "User":
            _require_unique(transaction, row)
        come, gone = _membership(transaction, row, resource.get("members", ()))
        if before is None or store.with_resource(before, own) != before or come or gone:
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
        """The change with what it means for the person's account."""
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
                if provider_accounts.reactivate(transaction, ref, row.disabled_at)
            ]
            row = settlement.put(before, row._replace(disabled_ref="", disabled_at=0))
            return change._replace(row=row, enabled=" ".join(back))
        lost = self._revoked(transaction, accounts, before, row)
        if lost.disabled:
            marked = row._replace(disabled_ref=lost.disabled, disabled_at=self._now)
            row = settlement.put(before, marked)
        return change._replace(row=row, disabled=lost.disabled, left=lost.left)

    def _renamed(self, transaction: Transaction, before: ScimRow | None, row: ScimRow) -> list[str]:
        """The accounts that matched the row before the change, which follow to another name."""
        accounts = self._accounts(transaction, before) if before and before != row else []
        if before and before.name_key != row.name_key:
            for account in accounts:
                provider_accounts.rename(transaction, account, before.name, row.name)
        return accounts

    def _revoked(
        self,
        transaction: Transaction,
        accounts: list[str],
        before: ScimRow | None,
        row: ScimRow,
    ) -> Revocation:
        accounts = accounts or self._accounts(transaction, row)
        # The name that a row is only about to get may turn out to be somebody else's.
        held = before.ref if before else ""
        is_own = held in set_changes.owned(transaction, SET, [held])
        entity = ProvisionedEntity(held if is_own else row.ref, is_own)
        return provider_accounts.deactivate(transaction, accounts, entity, self._now)

    def _accounts(self, transaction: Transaction, row: ScimRow) -> list[str]:
        person = ProvisionedPerson(row.id, self._target.groups.issuer, row.external_id, row.name)
        return provider_accounts.accounts_to_revoke(transaction, person)


def _with_active(resource: Resource, row: ScimRow) -> Resource:
    """The attributes of a user, who stays as active as before where nothing is said of it."""
    return {"active": row.active, **resource} if row.type == "User" else resource


def _existing(
    transaction: Transaction, type_: TypeName, id_: str, if_match: Collection[int] | None
) -> ScimRow:
    row = store.rows_of(transaction, [id_]).get(id_)
    if row is None or row.type != type_:
        raise not_found(type_, id_)
    if if_match is not None and row.version not in if_match:
        raise PreconditionFailedError(
            f"The resource is at version {row.version}, not at the one that If-Match names; "
            "nothing was written."
        )
    return row


def not_found(type_: TypeName, id_: str) -> NotFoundError:
    """The error for a resource that there is not."""
    return NotFoundError(f"There is no {type_} {id_[:80]}.")


def _require_unique(transaction: Transaction, row: ScimRow) -> None:
    if set(store.named(transaction, "User", row.name_key)) - {row.id}:
        raise ConflictError(
            f'There is a user "{row.name}" already; nothing was written.', scimType="uniqueness"
        )


def _membership(
    transaction: Transaction, row: ScimRow, members: Sequence[Resource]
) -> tuple[set[str], set[str]]:
    """The members that come to a group, and that leave it; raises InputError for unknown ones."""
    if row.type != "Group":
        return set(), set()
    wanted = {str(one.get("value", "")) for one in members}
    there = {member for _, member in store.members_of(transaction, [row.id])}
    come = wanted - there
    unknown = sorted(come - store.rows_of(transaction, come).keys()) if come else []
    if unknown:
        more = f" and {len(unknown) - _MOST_NAMED} more" if len(unknown) > _MOST_NAMED else ""
        named = ", ".join(f'"{one[:80]}"' for one in unknown[:_MOST_NAMED])
        told = f"There are no users or groups {named}{more} to be members; nothing was written."
        raise InputError(told, scimType="invalidValue")
    if row.id in wanted:
        raise InputError("A group cannot be its own member.", scimType="invalidValue")
    return come, there - wanted


def _part_record(transaction: Transaction, now: int) -> ImportPartRecord:
    """The record of the directory for the page of imports."""
    rows = store.troubled(transaction, _MOST_PROBLEMS)
    problems = [ReadingProblem(entities.ORIGIN, row.problem) for row in rows]
    count = store.problem_count(transaction)
    shown = store.shown_count(transaction)
    return ImportPartRecord(IMPORTER, PART, "complete", now, now, shown, count, problems)
