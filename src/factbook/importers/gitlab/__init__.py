"""Importer of GitLab groups: projects, their catalog files, subgroups and members.

A project's owner comes from CODEOWNERS, its own group, or a group that it is shared with.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Final, NamedTuple

import msgspec

from factbook.importers import code_host_parts
from factbook.importers.code_host_parts import (
    Memberships,
    RepositoryPart,
    find_places,
    name_components,
    name_groups,
    remember_former_names,
)
from factbook.importers.code_hosts import (
    API_VERSION,
    EVERYTHING,
    VIEW_URL,
    CodeHostImportOptions,
    Entity,
    FileAddresses,
    HostedFiles,
    HostedRepository,
    Ownership,
    Place,
    RootContent,
    RowListing,
    complete_options,
    find_owners_of_everything,
    make_metadata,
    make_reader,
    repeat_until_agreed,
)
from factbook.importers.gitlab.queries import (
    ADDRESSES,
    GUEST,
    MAINTAINER,
    NEWEST_FIRST,
    CurrentUser,
    GitlabFileCalls,
    GitlabRoot,
    GroupMember,
    ListedGroup,
    ListedProject,
    Membership,
    SharedGroup,
    list_gitlab_rows,
    read_gitlab_roots,
)
from factbook.importers.importer import ImporterKind, Show
from factbook.importers.snapshot import (
    ReadingProblem,
    Snapshot,
    SnapshotPart,
    is_person_account,
    select_people,
)
from factbook.integrations.gitlab.api import INSTANCE, SLUG, GitlabApi
from factbook.integrations.integration import get_stored_entry, run_for_each, store_entry
from factbook.outbound.client import build_path
from factbook.outbound.outcomes import Missing
from factbook.settings.option_tables import about

_NUMBER: Final = "gitlab.com/project-id"

MEMBERSHIP: Final = "membership"
SUBGROUPS: Final = "subgroups"
_OUTSIDE: Final = (
    "members of {}, which is invited into {}, are left out: that group isn't below the imported "
    "one; add them to a group that is"
)

# A trailing slash matches everything below; `**` after a slash is part of a name.
_PATTERNS: Final = EVERYTHING - {"/**"} | {"/", "/**/", "**/"}


class GitlabImportOptions(CodeHostImportOptions, frozen=True, kw_only=True):
    """Groups, and the parts to import."""

    groups: Annotated[
        tuple[str, ...],
        about("Groups to import, each with its subgroups. Empty: those of the integration."),
    ] = ()


class GroupPlace(NamedTuple):
    """An imported group; groups below are named by their relative paths."""

    place: Place
    path: str

    def name_of(self, path: str) -> str:
        """The name of a project or group below the group, and of the group itself."""
        below = path[len(self.path) + 1 :] or self.path.rpartition("/")[2]
        return below.replace("/", "-")

    def group_ref(self, path: str) -> str:
        """The reference of a group, unique among imported groups."""
        is_known = path.lower() in self.place.groups
        return self.place.ref("group", path if is_known else self.name_of(path))


def convert_gitlab_project(
    at: GroupPlace, one: ListedProject, root: GitlabRoot
) -> HostedRepository:
    """A project of a listing, as every code host lists them."""
    branch = one.default_branch or "HEAD"
    slug = one.path_with_namespace
    return HostedRepository(
        number=one.id,
        slug=slug,
        name=at.name_of(slug),
        url=one.web_url,
        tree=f"{one.web_url}/-/tree/{branch}/",
        branch=branch,
        version=root.version,
        annotations={SLUG: slug, _NUMBER: str(one.id), INSTANCE: at.place.host},
        description=one.description,
        topics=one.topics,
        language=root.language,
        is_archived=one.archived,
        is_fork=one.forked_from_project is not None,
        is_deleted=one.is_deleted(slug),
    )


def make_gitlab_group(at: GroupPlace, one: ListedGroup, parent: ListedGroup | None) -> Entity:
    """The entity of a group."""
    spec: Entity = {"type": "team", "profile": {"displayName": one.name}, "children": []}
    if parent is not None:
        spec["parent"] = at.group_ref(parent.full_path)
    made = make_metadata(at.place, "group", one.full_path, one.description)
    made["annotations"] = {
        _name_gitlab_annotation(at, "team-path"): one.full_path,
        VIEW_URL: one.web_url,
    }
    return {"apiVersion": API_VERSION, "kind": "Group", "metadata": made, "spec": spec}


def make_gitlab_user(at: GroupPlace, member: GroupMember, groups: Sequence[str]) -> Entity:
    """The user of a member of groups of these references."""
    profile = {"displayName": member.name.strip() or member.username}
    if member.avatar_url:
        profile["picture"] = member.avatar_url
    spec = {"profile": profile, "memberOf": groups}
    made = make_metadata(at.place, "user", member.username, None)
    made["annotations"] = {
        _name_gitlab_annotation(at, "user-login"): member.web_url,
        VIEW_URL: member.web_url,
    }
    return {"apiVersion": API_VERSION, "kind": "User", "metadata": made, "spec": spec}


def _name_gitlab_annotation(at: GroupPlace, name: str) -> str:
    """The name of an annotation of this host, which cannot have a port."""
    return f"{at.place.host.partition(':')[0]}/{name}"


@dataclass
class GroupTree:
    """A group and those below it, by path in lower case, the group itself first.

    Groups marked for deletion are in `deleted` instead, with everything below them. `missing` has
    the unread parts. `rights` are those of the credential: a member of the group sees everything
    below, other accounts only the groups of which they are members; each such group is a right.
    """

    root: ListedGroup | None = None
    groups: dict[str, ListedGroup] = field(default_factory=dict)
    deleted: dict[str, ListedGroup] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    rights: set[str] = field(default_factory=set)

    def is_deleted(self, path: str) -> bool:
        """True for a path in a group that is marked for deletion."""
        return any(f"{path.lower()}/".startswith(f"{group}/") for group in self.deleted)

    @property
    def seen(self) -> set[str]:
        """The rights, including the presence of subgroups: a suddenly empty list is not trusted."""
        return self.rights | ({SUBGROUPS} if len(self.groups) + len(self.deleted) > 1 else set())


@dataclass
class GroupMembers:
    """Members by id, and the member ids of each group; `missing` has the unread parts.

    `deleted` groups have no members. `outside` has sentences about invited groups that are outside
    these groups.
    """

    members: dict[int, GroupMember] = field(default_factory=dict)
    of_group: dict[int, set[int]] = field(default_factory=dict)
    deleted: set[int] = field(default_factory=set)
    missing: list[Missing] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def groups_of(self, member: GroupMember) -> set[int]:
        """The ids of a member's groups."""
        return {group for group, ids in self.of_group.items() if member.id in ids}

    def add(self, later: "GroupMembers") -> None:
        """Merge a later reading; people only in the earlier one keep their groups."""
        gone = self.members.keys() - later.members.keys()
        self.members |= later.members
        self.of_group = {id_: ids & gone for id_, ids in self.of_group.items()}
        for id_, ids in later.of_group.items():
            self.of_group[id_] = self.of_group.get(id_, set()) | ids
        self.missing += later.missing
        self.outside = later.outside

    @property
    def seen(self) -> set[str]:
        """The groups with members, as rights: a suddenly empty list is not trusted."""
        groups = self.deleted.union(group for group, ids in self.of_group.items() if ids)
        return {f"members of group {group}" for group in groups}


class _KnownMembers(msgspec.Struct, array_like=True):
    """Ids of the members of all groups, as they were read last."""

    ids: frozenset[int] = frozenset()


async def read_group_tree(api: GitlabApi, name: str) -> GroupTree:
    """A group and those below it."""
    root = await api.one(build_path("groups", name), ListedGroup)
    if isinstance(root, Missing):
        return GroupTree(missing=[root])
    number = str(root.id)
    target = build_path("groups", number, "descendant_groups")
    below = await list_gitlab_rows(api, target, ListedGroup, **NEWEST_FIRST)
    below.sort()
    tree = GroupTree(root)
    for one in (root, *sorted(below.rows.values(), key=lambda one: one.full_path.count("/"))):
        if one.is_deleted(one.full_path) or tree.is_deleted(one.full_path):
            tree.deleted[one.full_path.lower()] = one
        else:
            tree.groups[one.full_path.lower()] = one
    tree.missing += [below.missing] if below.missing else []
    member = await _is_group_member(api, number)
    if isinstance(member, Missing):
        tree.missing.append(member)
    if member is True:
        tree.rights = {MEMBERSHIP}
        return tree
    # Public groups are visible to everyone, without their private content.
    joined = await list_gitlab_rows(
        api, target, ListedGroup, min_access_level=GUEST, **NEWEST_FIRST
    )
    tree.missing += [joined.missing] if joined.missing else []
    tree.rights = {f"group {one.former_path}" for one in (root, *joined.rows.values())}
    return tree


async def read_group_members(api: GitlabApi, tree: GroupTree) -> GroupMembers:
    """The direct members of each group, and those of the groups that are invited into it.

    Members are read again if a former member is missing: a person moving between groups meanwhile
    may be in neither list.
    """
    found = await _read_direct_members(api, tree)
    if found.missing or tree.root is None:
        return found
    key = f"members:{tree.root.id}"
    known = await get_stored_entry(api.memory, key, _KnownMembers) or _KnownMembers()
    if known.ids - found.members.keys():
        found.add(await _read_direct_members(api, tree))
    ids = frozenset(found.members)
    if not found.missing and ids != known.ids:
        await store_entry(api.memory, key, _KnownMembers(ids))
    return found


async def _read_direct_members(api: GitlabApi, tree: GroupTree) -> GroupMembers:
    async def of(group: int) -> RowListing[GroupMember]:
        target = build_path("groups", str(group), "members")
        return await repeat_until_agreed(lambda: list_gitlab_rows(api, target, GroupMember))

    groups = {one.id: one for one in tree.groups.values()}
    listed = await run_for_each(groups, of)
    found = GroupMembers(deleted={one.id for one in tree.deleted.values()})
    for group, members in listed.items():
        found.of_group[group] = set(members.rows)
        found.members |= members.rows
        found.missing += [members.missing] if members.missing else []
    await _add_invited_members(api, groups, found)
    return found


async def _add_invited_members(
    api: GitlabApi, groups: Mapping[int, ListedGroup], found: GroupMembers
) -> None:
    """Add the direct members of groups to those that they are invited into."""

    async def of(group: int) -> Sequence[SharedGroup] | Missing:
        shared = groups[group].shared_with_groups
        if shared is not None:
            return shared
        answer = await api.get(build_path("groups", str(group)), with_projects="false")
        one = answer.read_as(ListedGroup)
        return one if isinstance(one, Missing) else one.shared_with_groups or ()

    direct = {group: frozenset(ids) for group, ids in found.of_group.items()}
    for group, shared in (await run_for_each(groups, of)).items():
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


async def _is_group_member(api: GitlabApi, group: str) -> bool | Missing:
    """True if the account of the credential is a member of a group, or of one above it."""
    user = await api.one("/user", CurrentUser)
    found: Membership | Missing
    if isinstance(user, Missing):
        found = user
    else:
        target = build_path("groups", group, "members", "all", str(user.id))
        found = await api.one(target, Membership)
    if isinstance(found, Missing):
        return found if found.passing else False
    return found.access_level >= GUEST


class ProjectOwners:
    """Owners of the projects of a group; without `members`, no people are read."""

    def __init__(
        self,
        at: GroupPlace,
        projects: Mapping[int, ListedProject],
        tree: GroupTree,
        members: GroupMembers | None,
        now: int,
    ) -> None:
        self._now = now
        self._at = at
        self._projects = projects
        self._members = members
        self._groups = tree.groups
        self._by_id = {one.id: one for one in tree.groups.values()}
        self._root = tree.root
        people = members.members.values() if members else ()
        self._users = {one.username.lower() for one in people if is_person_account(one)}
        self._is_known = not (tree.missing or (members and members.missing))

    def of(self, one: HostedRepository, root: RootContent) -> Ownership:
        """The owner of a project.

        The owner is the first group or member in the last CODEOWNERS line for `*`, else the
        project's subgroup, else the only group with maintainer access. While some people are
        unknown, a previously known owner may be missing.
        """
        ref = self._codeowner(root.codeowners) if root.codeowners is not None else None
        if ref is None and self._members is not None:
            ref = self._group(self._projects[one.number])
        return Ownership(ref, certain=self._is_known)

    def _codeowner(self, text: str) -> str | None:
        for owner in find_owners_of_everything(text, patterns=_PATTERNS, sections=True):
            name = owner.removeprefix("@").lower()
            if not owner.startswith("@"):
                continue
            if found := self._groups.get(name):
                return self._at.group_ref(found.full_path)
            if name in self._users:
                return self._at.place.ref("user", owner[1:])
        return None

    def _group(self, project: ListedProject) -> str | None:
        is_in = self._by_id.get(project.namespace.id)
        if is_in is not None and is_in is not self._root:
            return self._at.group_ref(is_in.full_path)
        shared = [
            one.group_id for one in project.shared_with_groups if one.gives(MAINTAINER, self._now)
        ]
        found = self._by_id.get(shared[0]) if len(shared) == 1 else None
        return self._at.group_ref(found.full_path) if found else None


@dataclass
class _ReadGroup:
    """Everything of a group except files."""

    at: GroupPlace
    tree: GroupTree
    listed: RowListing[ListedProject]
    roots: Mapping[int, GitlabRoot]
    members: GroupMembers | None

    @property
    def hosted(self) -> list[HostedRepository]:
        """The projects."""
        rows = self.listed.rows.values()
        found = [convert_gitlab_project(self.at, one, self.roots[one.id]) for one in rows]
        return [
            replace(one, is_deleted=True) if self.tree.is_deleted(one.slug) else one
            for one in found
        ]


async def read_gitlab(
    api: GitlabApi, options: GitlabImportOptions, show: Show = lambda text: None
) -> Snapshot:
    """A snapshot of the groups: parts for the projects, groups and members of each.

    `show` is called with the current step.
    """
    places = await find_places(api.memory, api.host, options.groups, options.namespace)
    read = [await _read_group(api, place, options, show) for place in places]
    files = _open_files(api, options, read)
    memberships = Memberships(api.memory, api.host)
    for one in read:
        if one.members is not None:
            _add_group_members(one, one.members, memberships)
    await memberships.compare()
    found: list[SnapshotPart] = []
    left_out: Counter[str] = Counter()
    for one in read:
        show(f"Reading the files of {one.at.path}")
        found += await _make_project_parts(api, one, options, files, left_out)
        if one.members is not None:
            left_out["groups marked for deletion"] += len(one.tree.deleted)
            found += [
                _make_groups_part(one),
                _make_gitlab_members_part(one, one.members, memberships, left_out),
            ]
    await files.remember()
    return Snapshot(tuple(found), +left_out)


async def _read_group(
    api: GitlabApi, place: Place, options: GitlabImportOptions, show: Show
) -> _ReadGroup:
    name = place.login
    show(f"Reading the projects of {name}")
    tree = await read_group_tree(api, name)
    root = tree.root
    at = GroupPlace(place, root.full_path if root else name)
    if options.people:
        wanted = {key: at.name_of(one.full_path) for key, one in tree.groups.items()}
        numbers = {key: one.id for key, one in tree.groups.items()}
        complete = not tree.missing
        at = at._replace(
            place=await name_groups(api.memory, place, wanted, numbers, complete=complete)
        )
    if root is None:
        nothing = RowListing[ListedProject](missing=tree.missing[0])
        return _ReadGroup(at, tree, nothing, {}, GroupMembers() if options.people else None)
    target = build_path("groups", str(root.id), "projects")
    query = {**NEWEST_FIRST, "include_subgroups": "true", "with_shared": "false"}
    listed = await list_gitlab_rows(api, target, ListedProject, **query)
    listed.sort()
    show(f"Reading {len(listed.rows):,} projects of {name}")
    projects = list(listed.rows.values())
    roots = await read_gitlab_roots(api, root.full_path, projects, options.files)
    members = await read_group_members(api, tree) if options.people else None
    return _ReadGroup(at, tree, listed, roots, members)


def _open_files(
    api: GitlabApi, options: GitlabImportOptions, read: list[_ReadGroup]
) -> HostedFiles:
    """Access to the files; projects with an unknown last commit are treated as unlisted."""
    known = [project for one in read for project in one.hosted if one.roots[project.number].is_read]
    owners = [one.at.path for one in read]
    addresses = FileAddresses(api.host, ADDRESSES, owners, "a group")
    calls, elsewhere = GitlabFileCalls(api, known), api.elsewhere(options.text_bases)
    return HostedFiles(calls, api.memory, addresses, known, elsewhere)


async def _make_project_parts(
    api: GitlabApi,
    one: _ReadGroup,
    options: GitlabImportOptions,
    files: HostedFiles,
    left_out: Counter[str],
) -> list[SnapshotPart]:
    """The part of the projects, and that of people whom their files may add."""
    rows, complete = one.listed.rows, not one.listed.missing
    hosted = await name_components(api.memory, one.at.place, one.hosted, complete=complete)
    owners = ProjectOwners(one.at, rows, one.tree, one.members, api.now)
    # GitLab's name for a project marked for deletion is not a former name.
    remaining = [each for each in hosted if not each.is_deleted]
    former = await remember_former_names(api.memory, one.at.place, remaining)
    part = RepositoryPart(
        one.at.place, "project", "projects", owners.of, former, options.people_from
    )
    roots = {number: root.content for number, root in one.roots.items()}
    wanted = code_host_parts.choose_repositories(hosted, options, left_out, "projects")
    await part.read(wanted, roots, files, whole=complete)
    visible = {f"{row.visibility} projects" for row in rows.values()}
    missing = one.listed.missing or next(iter(one.tree.missing), None)
    made = part.part(missing, visible | one.tree.rights, hosted)
    return [made, *part.people(made)]


def _make_groups_part(one: _ReadGroup) -> SnapshotPart:
    """The part of the groups."""
    by_id = {group.id: group for group in one.tree.groups.values()}
    items = []
    for group in one.tree.groups.values():
        parent = by_id.get(group.parent_id or 0)
        items.append(
            code_host_parts.make_person(
                one.at.place, "group", group.id, make_gitlab_group(one.at, group, parent), group
            )
        )
    return code_host_parts.make_people_part(
        one.at.place, "groups", items, one.tree.missing, one.tree.seen
    )


def _add_group_members(one: _ReadGroup, members: GroupMembers, memberships: Memberships) -> None:
    refs = {each.id: one.at.group_ref(each.full_path) for each in one.tree.groups.values()}
    groups = {
        each.id: [refs[id_] for id_ in members.groups_of(each)]
        for each in members.members.values()
        if is_person_account(each)
    }
    whole = not (one.tree.missing or members.missing)
    memberships.add(one.at.place, groups, certain=whole, complete=whole)


def _make_gitlab_members_part(
    one: _ReadGroup, members: GroupMembers, memberships: Memberships, left_out: Counter[str]
) -> SnapshotPart:
    """The part of the members, tentative while members of any group are missing."""
    missing = [*one.tree.missing, *members.missing]
    items = []
    for member in select_people(members.members.values(), left_out):
        if not memberships.first(member.id):
            continue
        entity = make_gitlab_user(one.at, member, memberships.of(member.id))
        some = memberships.uncertain(one.at.place, member.id)
        items.append(
            code_host_parts.make_person(
                one.at.place, "user", member.id, entity, member, tentative=some
            )
        )
    rights = one.tree.seen | members.seen
    part = code_host_parts.make_people_part(one.at.place, "members", items, missing, rights)
    notes = [ReadingProblem(one.at.place.origin, text) for text in members.outside]
    return replace(part, problems=(*part.problems, *notes))


IMPORTER: Final = ImporterKind(
    id="gitlab",
    title="GitLab",
    options=GitlabImportOptions,
    makes=("component", "group", "user"),
    read=make_reader(GitlabApi, read_gitlab),
    vendor="gitlab",
    account_options=("host", "token", "api_url"),
    owners="groups",
    by_people=True,
    file_page="-/blob/HEAD/{}",
    completed=partial(complete_options, name="groups", flag="--group"),
)
