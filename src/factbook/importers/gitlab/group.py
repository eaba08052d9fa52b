"""Reading of GitLab groups: projects, their catalog files, subgroups and members."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from factbook.importers.code_host import parts
from factbook.importers.code_host.files import FileAddresses, HostedFiles
from factbook.importers.code_host.names import former_names
from factbook.importers.code_host.parts import RepositoryPart
from factbook.importers.code_host.places import Memberships, known_places, named, with_groups
from factbook.importers.code_host.repository import HostedRepository, Place
from factbook.importers.code_host.rows import RowListing
from factbook.importers.gitlab import entities
from factbook.importers.gitlab.answers import ListedProject
from factbook.importers.gitlab.entities import GroupPlace
from factbook.importers.gitlab.files import ADDRESSES, GitlabFileCalls
from factbook.importers.gitlab.lists import NEWEST_FIRST, listing
from factbook.importers.gitlab.options import GitlabImportOptions
from factbook.importers.gitlab.owners import ProjectOwners
from factbook.importers.gitlab.people import GroupMembers, GroupTree, read_groups, read_members
from factbook.importers.gitlab.roots import GitlabRoot, read_roots
from factbook.importers.persons import is_person, persons
from factbook.importers.snapshot import ReadingProblem, Snapshot, SnapshotPart
from factbook.integrations.gitlab.api import GitlabApi
from factbook.outbound import path

Show = Callable[[str], None]


@dataclass
class _ReadGroup:
    """Everything of a group that files are not needed for."""

    at: GroupPlace
    tree: GroupTree
    listed: RowListing[ListedProject]
    roots: Mapping[int, GitlabRoot]
    members: GroupMembers | None

    @property
    def hosted(self) -> list[HostedRepository]:
        """The projects."""
        rows = self.listed.rows.values()
        found = [entities.hosted(self.at, one, self.roots[one.id]) for one in rows]
        return [
            replace(one, is_deleted=True) if self.tree.is_deleted(one.slug) else one
            for one in found
        ]


async def read(
    api: GitlabApi, options: GitlabImportOptions, show: Show = lambda text: None
) -> Snapshot:
    """A snapshot of the groups: parts for the projects, groups and members of each.

    `show` is told what is being read.
    """
    places = await known_places(api.memory, api.host, options.groups, options.namespace)
    read = [await _group(api, place, options, show) for place in places]
    files = _files(api, options, read)
    memberships = Memberships(api.memory, api.host)
    for one in read:
        if one.members is not None:
            _add_members(one, one.members, memberships)
    await memberships.compare()
    found: list[SnapshotPart] = []
    left_out: Counter[str] = Counter()
    for one in read:
        show(f"Reading the files of {one.at.path}")
        found += await _projects(api, one, options, files, left_out)
        if one.members is not None:
            left_out["groups marked for deletion"] += len(one.tree.deleted)
            found += [_groups(one), _members(one, one.members, memberships, left_out)]
    await files.remember()
    return Snapshot(tuple(found), +left_out)


async def _group(
    api: GitlabApi, place: Place, options: GitlabImportOptions, show: Show
) -> _ReadGroup:
    name = place.login
    show(f"Reading the projects of {name}")
    tree = await read_groups(api, name)
    root = tree.root
    at = GroupPlace(place, root.full_path if root else name)
    if options.people:
        wanted = {key: at.name_of(one.full_path) for key, one in tree.groups.items()}
        numbers = {key: one.id for key, one in tree.groups.items()}
        complete = not tree.missing
        at = at._replace(
            place=await with_groups(api.memory, place, wanted, numbers, complete=complete)
        )
    if root is None:
        nothing = RowListing[ListedProject](missing=tree.missing[0])
        return _ReadGroup(at, tree, nothing, {}, GroupMembers() if options.people else None)
    target = path("groups", str(root.id), "projects")
    query = {**NEWEST_FIRST, "include_subgroups": "true", "with_shared": "false"}
    listed = await listing(api, target, ListedProject, **query)
    listed.sort()
    show(f"Reading {len(listed.rows):,} projects of {name}")
    projects = list(listed.rows.values())
    roots = await read_roots(api, root.full_path, projects, options.files)
    members = await read_members(api, tree) if options.people else None
    return _ReadGroup(at, tree, listed, roots, members)


def _files(api: GitlabApi, options: GitlabImportOptions, read: list[_ReadGroup]) -> HostedFiles:
    """Access to the files; projects whose last commit is not known are as those not listed."""
    known = [project for one in read for project in one.hosted if one.roots[project.number].is_read]
    owners = [one.at.path for one in read]
    addresses = FileAddresses(api.host, ADDRESSES, owners, "a group")
    calls, elsewhere = GitlabFileCalls(api, known), api.elsewhere(options.text_bases)
    return HostedFiles(calls, api.memory, addresses, known, elsewhere)


async def _projects(
    api: GitlabApi,
    one: _ReadGroup,
    options: GitlabImportOptions,
    files: HostedFiles,
    left_out: Counter[str],
) -> list[SnapshotPart]:
    """The part of the projects, and that of people whom their files may add."""
    rows, complete = one.listed.rows, not one.listed.missing
    hosted = await named(api.memory, one.at.place, one.hosted, complete=complete)
    owners = ProjectOwners(one.at, rows, one.tree, one.members, api.now)
    # The name that GitLab gives to what it will delete is none of those that it had.
    remaining = [each for each in hosted if not each.is_deleted]
    former = await former_names(api.memory, one.at.place, remaining)
    part = RepositoryPart(
        one.at.place, "project", "projects", owners.of, former, options.people_from
    )
    roots = {number: root.content for number, root in one.roots.items()}
    wanted = parts.chosen(hosted, options, left_out, "projects")
    await part.read(wanted, roots, files, whole=complete)
    visible = {f"{row.visibility} projects" for row in rows.values()}
    missing = one.listed.missing or next(iter(one.tree.missing), None)
    made = part.part(missing, visible | one.tree.rights, hosted)
    return [made, *part.people(made)]


def _groups(one: _ReadGroup) -> SnapshotPart:
    """The part of the groups."""
    by_id = {each.id: each for each in one.tree.groups.values()}
    items = []
    for each in one.tree.groups.values():
        parent = by_id.get(each.parent_id or 0)
        items.append(
            parts.person(one.at.place, "group", each.id, entities.group(one.at, each, parent), each)
        )
    return parts.people_part(one.at.place, "groups", items, one.tree.missing, one.tree.seen)


def _add_members(one: _ReadGroup, members: GroupMembers, memberships: Memberships) -> None:
    refs = {each.id: one.at.group_ref(each.full_path) for each in one.tree.groups.values()}
    groups = {
        each.id: [refs[id_] for id_ in members.groups_of(each)]
        for each in members.members.values()
        if is_person(each)
    }
    whole = not (one.tree.missing or members.missing)
    memberships.add(one.at.place, groups, certain=whole, complete=whole)


def _members(
    one: _ReadGroup, members: GroupMembers, memberships: Memberships, left_out: Counter[str]
) -> SnapshotPart:
    """The part of the members, who change nothing while the members of some group are missing."""
    missing = [*one.tree.missing, *members.missing]
    items = []
    for each in persons(members.members.values(), left_out):
        if not memberships.first(each.id):
            continue
        entity = entities.user(one.at, each, memberships.of(each.id))
        some = memberships.uncertain(one.at.place, each.id)
        items.append(parts.person(one.at.place, "user", each.id, entity, each, tentative=some))
    rights = one.tree.seen | members.seen
    part = parts.people_part(one.at.place, "members", items, missing, rights)
    notes = [ReadingProblem(one.at.place.origin, text) for text in members.outside]
    return replace(part, problems=(*part.problems, *notes))
