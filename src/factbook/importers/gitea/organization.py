"""Reading of Gitea organizations: repositories, their catalog files, teams and members."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from factbook import text_files
from factbook.importers.catalog_info.locations import FileLocation
from factbook.importers.code_host import parts
from factbook.importers.code_host.entities import KnownOwners
from factbook.importers.code_host.files import HEAD, FileAddresses, HostedFiles
from factbook.importers.code_host.names import former_names
from factbook.importers.code_host.parts import RepositoryPart
from factbook.importers.code_host.places import Memberships, known_places, named, with_groups
from factbook.importers.code_host.repository import (
    HostedRepository,
    Ownership,
    Place,
    RootContent,
)
from factbook.importers.code_host.rows import RowListing
from factbook.importers.gitea import entities
from factbook.importers.gitea.answers import GiteaMember, GiteaOrganization, OwnRepository
from factbook.importers.gitea.files import ADDRESSES, GiteaFileCalls
from factbook.importers.gitea.lists import found_rows, listing
from factbook.importers.gitea.options import GiteaImportOptions
from factbook.importers.gitea.people import Teams, read_organization_members, read_teams
from factbook.importers.persons import is_person, persons
from factbook.importers.snapshot import Snapshot, SnapshotPart
from factbook.integrations.gitea.api import GiteaApi
from factbook.outbound import Memory, path
from factbook.outbound.outcomes import Missing, Outcome

Show = Callable[[str], None]

_CODEOWNERS: Final = (
    "CODEOWNERS", "docs/CODEOWNERS", ".gitea/CODEOWNERS", ".forgejo/CODEOWNERS",
)  # fmt: skip
# The newest first: behind the last, a new one would make up the total for another that a removal
# moved to a page that was read.
_ALL: Final = {"exclusive": "true", "sort": "id", "order": "desc"}


@dataclass
class _ReadOrganization:
    """Everything of an organization that files are not needed for; no members: not asked for."""

    place: Place
    listed: RowListing[OwnRepository]
    hosted: Sequence[HostedRepository]
    teams: Teams
    members: RowListing[GiteaMember] | None

    @property
    def owners(self) -> KnownOwners:
        """The teams and members; whoever is in no team sees only those that are public."""
        if self.members is None or self.teams.missing:
            return KnownOwners(None, None)
        teams = {team.name.lower() for team in self.teams.teams.values()}
        if self.members.missing or not self.teams.rights:
            return KnownOwners(teams, None)
        people = {one.login.lower() for one in self.members.rows.values() if is_person(one)}
        return KnownOwners(teams, people)


async def read(
    api: GiteaApi, options: GiteaImportOptions, show: Show = lambda text: None
) -> Snapshot:
    """A snapshot of the organizations: parts for the repositories, teams and members of each.

    `show` is told what is being read.
    """
    memberships, read = Memberships(api.memory, api.host), []
    for place in await known_places(api.memory, api.host, options.organizations, options.namespace):
        show(f"Reading the repositories of {place.login}")
        one = await _organization(api, place, people=options.people)
        if one.members is not None:
            one = await _with_teams(api.memory, one, one.members, memberships)
        read.append(one)
    await memberships.compare()
    every = [row for one in read for row in one.listed.rows.values()]
    addresses = FileAddresses(api.host, ADDRESSES, options.organizations)
    hosted = [each for one in read for each in one.hosted]
    calls, elsewhere = GiteaFileCalls(api, every), api.elsewhere(options.text_bases)
    files = HostedFiles(calls, api.memory, addresses, hosted, elsewhere)
    left_out: Counter[str] = Counter()
    found: list[SnapshotPart] = []
    for one in read:
        show(f"Reading the files of {one.place.login}")
        found += await _repositories(api, one, options, files, left_out)
        if one.members is not None:
            found += [_teams(one), _members(one, one.members, memberships, left_out)]
    await files.remember()
    return Snapshot(tuple(found), left_out)


async def _with_teams(
    memory: Memory,
    one: _ReadOrganization,
    members: RowListing[GiteaMember],
    memberships: Memberships,
) -> _ReadOrganization:
    """The organization with the names of its teams, whose members are added to the memberships."""
    names = {team.name.lower(): team.name for team in one.teams.teams.values()}
    numbers = {team.name.lower(): team.id for team in one.teams.teams.values()}
    certain = not one.teams.missing
    place = await with_groups(memory, one.place, names, numbers, complete=certain)
    groups = {
        member.id: [place.ref("group", team.name) for team in one.teams.of_member(member)]
        for member in (members.rows.values() if certain else ())
    }
    complete = certain and not (members.missing or one.teams.doubt)
    memberships.add(place, groups, certain=certain, complete=complete)
    return replace(one, place=place)


async def _organization(api: GiteaApi, place: Place, *, people: bool) -> _ReadOrganization:
    """The repositories of an organization in the order of their making, and its people."""
    found = await api.one(path("orgs", place.login), GiteaOrganization)
    if isinstance(found, Missing):
        nothing = RowListing[OwnRepository](missing=found)
        members = RowListing[GiteaMember](missing=found) if people else None
        return _ReadOrganization(place, nothing, [], Teams(missing=[found]), members)
    listed = await listing(api, "/repos/search", OwnRepository, found_rows, uid=found.id, **_ALL)
    listed.sort()
    hosted = [entities.hosted(api, one) for one in listed.rows.values()]
    teams = await read_teams(api, place.login, found.id, whole=people)
    members = await read_organization_members(api, place.login) if people else None
    return _ReadOrganization(place, listed, hosted, teams, members)


async def _repositories(
    api: GiteaApi,
    one: _ReadOrganization,
    options: GiteaImportOptions,
    files: HostedFiles,
    left_out: Counter[str],
) -> list[SnapshotPart]:
    """The part of the repositories, and that of people whom their files may add."""
    complete = not (one.listed.missing or one.teams.doubt)
    hosted = await named(api.memory, one.place, one.hosted, complete=complete)
    wanted = parts.chosen(hosted, options, left_out, "repositories")
    roots = await _roots(wanted, options.files, files)
    former = await former_names(api.memory, one.place, hosted)

    def owner_of(repository: HostedRepository, root: RootContent) -> Ownership:
        return _owner(one, repository, root)

    part = RepositoryPart(
        one.place, "repository", "repositories", owner_of, former, options.people_from
    )
    await part.read(wanted, roots, files, whole=complete)
    rows = one.listed.rows.values()
    visible = {f"{'private' if row.private else 'public'} repositories" for row in rows}
    made = part.part(one.listed.missing or one.teams.doubt, visible | one.teams.rights, one.hosted)
    return [made, *part.people(made)]


async def _roots(
    wanted: Sequence[HostedRepository], names: Sequence[str], files: HostedFiles
) -> dict[int, RootContent]:
    """The files that the import of each repository begins with."""
    places = {
        one.number: [FileLocation(one.slug, HEAD, name) for name in (*names, *_CODEOWNERS)]
        for one in wanted
        if one.version is not None
    }
    read = await files.read([each for several in places.values() for each in several])
    found = {one.number: RootContent() for one in wanted}
    for number, several in places.items():
        root = found[number]
        for location in several:
            content = read[location]
            is_catalog = location.path in names
            if isinstance(content, Missing) and content.outcome is Outcome.NOT_FOUND:
                continue
            if is_catalog and root.catalog is None:
                root.catalog = location.path, content
            elif isinstance(content, bytes) and not is_catalog and root.codeowners is None:
                root.codeowners = text_files.utf_8(content).decode(errors="replace")
            elif isinstance(content, Missing) and not is_catalog:
                root.missing.append(content)
    return found


def _owner(one: _ReadOrganization, repository: HostedRepository, root: RootContent) -> Ownership:
    """The owner by CODEOWNERS, then the only team that administers or writes to it.

    While the teams are not known, an owner may be missing that was known before.
    """
    is_known = one.members is not None and not one.teams.missing
    if root.codeowners is not None:
        ref = entities.codeowner(one.place, root.codeowners, one.owners)
        if ref is not None:
            return Ownership(ref)
    if not is_known:
        return Ownership(None, certain=one.members is None)
    team = one.teams.owner_of(repository.number)
    return Ownership(one.place.ref("group", team.name) if team else None)


def _teams(one: _ReadOrganization) -> SnapshotPart:
    """The part of the teams."""
    items = [
        parts.person(one.place, "team", team.id, entities.group(one.place, team), team)
        for team in one.teams.teams.values()
    ]
    return parts.people_part(one.place, "teams", items, one.teams.missing, one.teams.rights)


def _members(
    one: _ReadOrganization,
    members: RowListing[GiteaMember],
    memberships: Memberships,
    left_out: Counter[str],
) -> SnapshotPart:
    """The part of the members, who change nothing while their teams are not known."""
    items = []
    for member in persons(members.rows.values(), left_out):
        if not memberships.first(member.id):
            continue
        entity = entities.user(one.place, member, memberships.of(member.id))
        some = memberships.uncertain(one.place, member.id)
        items.append(parts.person(one.place, "user", member.id, entity, member, tentative=some))
    missing = [each for each in (members.missing, one.teams.doubt) if each]
    return parts.people_part(one.place, "members", items, missing, one.teams.rights)
