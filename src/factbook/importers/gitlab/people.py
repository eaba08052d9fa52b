"""Groups below a group, with the members of each, and what the credential is in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from factbook.importers.code_host.rows import RowListing, agreed
from factbook.importers.gitlab.answers import (
    GUEST,
    CurrentUser,
    GroupMember,
    ListedGroup,
    Membership,
    SharedGroup,
)
from factbook.importers.gitlab.lists import NEWEST_FIRST, listing
from factbook.integrations.gitlab.api import GitlabApi
from factbook.integrations.integration import each, store_entry, stored_entry
from factbook.outbound import path
from factbook.outbound.outcomes import Missing

MEMBERSHIP: Final = "membership"
SUBGROUPS: Final = "subgroups"
_OUTSIDE: Final = (
    "members of {}, which is invited into {}, are left out: that group isn't below the imported "
    "one; add them to a group that is"
)


@dataclass
class GroupTree:
    """A group and those below it, by path in lower case, the group itself first.

    Those that are marked for deletion are `deleted` instead, with everything below them.
    `missing` says what was not read. `rights` are those of the credential: a member of the group
    sees everything below it, anybody else what is in the groups that it is a member of, each of
    which is a right.
    """

    root: ListedGroup | None = None
    groups: dict[str, ListedGroup] = field(default_factory=dict)
    deleted: dict[str, ListedGroup] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    rights: set[str] = field(default_factory=set)

    def is_deleted(self, path: str) -> bool:
        """True for what is in a group that is marked for deletion."""
        return any(f"{path.lower()}/".startswith(f"{group}/") for group in self.deleted)

    @property
    def seen(self) -> set[str]:
        """The rights, and that there are groups below: a list that is suddenly empty is none."""
        return self.rights | ({SUBGROUPS} if len(self.groups) + len(self.deleted) > 1 else set())


@dataclass
class GroupMembers:
    """Members by id, and the ids of those of each group; `missing` says what was not read.

    Nobody is a member of the groups that are `deleted`. `outside` are sentences about groups that
    were invited and are in none of these groups.
    """

    members: dict[int, GroupMember] = field(default_factory=dict)
    of_group: dict[int, set[int]] = field(default_factory=dict)
    deleted: set[int] = field(default_factory=set)
    missing: list[Missing] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def groups_of(self, member: GroupMember) -> set[int]:
        """The ids of the groups that somebody is a member of."""
        return {group for group, ids in self.of_group.items() if member.id in ids}

    def add(self, later: "GroupMembers") -> None:
        """Take over a later reading; who is only in the earlier one stays with its groups."""
        gone = self.members.keys() - later.members.keys()
        self.members |= later.members
        self.of_group = {id_: ids & gone for id_, ids in self.of_group.items()}
        for id_, ids in later.of_group.items():
            self.of_group[id_] = self.of_group.get(id_, set()) | ids
        self.missing += later.missing
        self.outside = later.outside

    @property
    def seen(self) -> set[str]:
        """The groups with members, as rights: a list that is suddenly empty is not believed."""
        groups = self.deleted.union(group for group, ids in self.of_group.items() if ids)
        return {f"members of group {group}" for group in groups}


class _KnownMembers(msgspec.Struct, array_like=True):
    """Ids of the members of all groups, as they were read last."""

    ids: frozenset[int] = frozenset()


async def read_groups(api: GitlabApi, name: str) -> GroupTree:
    """A group and those below it."""
    root = await api.one(path("groups", name), ListedGroup)
    if isinstance(root, Missing):
        return GroupTree(missing=[root])
    number = str(root.id)
    target = path("groups", number, "descendant_groups")
    below = await listing(api, target, ListedGroup, **NEWEST_FIRST)
    below.sort()
    tree = GroupTree(root)
    for one in (root, *sorted(below.rows.values(), key=lambda one: one.full_path.count("/"))):
        if one.is_deleted(one.full_path) or tree.is_deleted(one.full_path):
            tree.deleted[one.full_path.lower()] = one
        else:
            tree.groups[one.full_path.lower()] = one
    tree.missing += [below.missing] if below.missing else []
    member = await _is_member(api, number)
    if isinstance(member, Missing):
        tree.missing.append(member)
    if member is True:
        tree.rights = {MEMBERSHIP}
        return tree
    # A public group is shown to everybody, without what is private in it.
    joined = await listing(api, target, ListedGroup, min_access_level=GUEST, **NEWEST_FIRST)
    tree.missing += [joined.missing] if joined.missing else []
    tree.rights = {f"group {one.former_path}" for one in (root, *joined.rows.values())}
    return tree


async def read_members(api: GitlabApi, tree: GroupTree) -> GroupMembers:
    """The direct members of each group, and those of the groups that are invited into it.

    They are read again when somebody who was a member is none: one who goes from one group to
    another meanwhile may be in neither.
    """
    found = await _members(api, tree)
    if found.missing or tree.root is None:
        return found
    key = f"members:{tree.root.id}"
    known = await stored_entry(api.memory, key, _KnownMembers) or _KnownMembers()
    if known.ids - found.members.keys():
        found.add(await _members(api, tree))
    ids = frozenset(found.members)
    if not found.missing and ids != known.ids:
        await store_entry(api.memory, key, _KnownMembers(ids))
    return found


async def _members(api: GitlabApi, tree: GroupTree) -> GroupMembers:
    async def of(group: int) -> RowListing[GroupMember]:
        target = path("groups", str(group), "members")
        return await agreed(lambda: listing(api, target, GroupMember))

    groups = {one.id: one for one in tree.groups.values()}
    listed = await each(groups, of)
    found = GroupMembers(deleted={one.id for one in tree.deleted.values()})
    for group, members in listed.items():
        found.of_group[group] = set(members.rows)
        found.members |= members.rows
        found.missing += [members.missing] if members.missing else []
    await _add_invited(api, groups, found)
    return found


async def _add_invited(
    api: GitlabApi, groups: Mapping[int, ListedGroup], found: GroupMembers
) -> None:
    """Add the direct members of groups to those that they are invited into."""

    async def of(group: int) -> Sequence[SharedGroup] | Missing:
        shared = groups[group].shared_with_groups
        if shared is not None:
            return shared
        answer = await api.get(path("groups", str(group)), with_projects="false")
        one = answer.read_as(ListedGroup)
        return one if isinstance(one, Missing) else one.shared_with_groups or ()

    direct = {group: frozenset(ids) for group, ids in found.of_group.items()}
    for group, shared in (await each(groups, of)).items():
        if isinstance(shared, Missing):
            found.missing.append(shared)
            continue
        for one in shared:
            if not one.gives(GUEST, api.now) or one.group_id in found.deleted:
                continue
            found.of_group[group] |= direct.get(one.group_id, frozenset())
            if one.group_id not in direct:
                name = one.group_full_path or f"group {one.group_id}"
                found.outside.append(_OUTSIDE.format(name, groups[group].full_path))


async def _is_member(api: GitlabApi, group: str) -> bool | Missing:
    """True if the account of the credential is a member of a group, or of one above it."""
    user = await api.one("/user", CurrentUser)
    found: Membership | Missing
    if isinstance(user, Missing):
        found = user
    else:
        target = path("groups", group, "members", "all", str(user.id))
        found = await api.one(target, Membership)
    if isinstance(found, Missing):
        return found if found.passing else False
    return found.access_level >= GUEST
