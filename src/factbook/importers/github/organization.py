"""Reading of GitHub organizations: repositories, their catalog files, teams and members."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from factbook.importers.code_host import parts
from factbook.importers.code_host.files import HEAD, FileAddresses, HostedFiles
from factbook.importers.code_host.names import former_names
from factbook.importers.code_host.parts import RepositoryPart
from factbook.importers.code_host.places import Memberships, known_places, named, with_groups
from factbook.importers.code_host.repository import Place, RootContent
from factbook.importers.github import entities, queries
from factbook.importers.github.answers import ListedRepository
from factbook.importers.github.files import GithubFileCalls, addresses
from factbook.importers.github.lists import Listing, ListingQuery, listing
from factbook.importers.github.options import GithubImportOptions
from factbook.importers.github.owners import TeamOwners
from factbook.importers.github.teams import People, read_people
from factbook.importers.snapshot import Snapshot, SnapshotPart
from factbook.integrations.github.graphql import GithubApi
from factbook.outbound import Memory
from factbook.outbound.outcomes import Missing

_REPOSITORIES_IN_PAGE: Final = 50


async def read(
    api: GithubApi, options: GithubImportOptions, show: Callable[[str], None] = lambda text: None
) -> Snapshot:
    """A snapshot of the organizations: parts for the repositories, teams and members of each.

    `show` is told what is being read.
    """
    left_out: Counter[str] = Counter()
    places = await known_places(api.memory, api.host, options.organizations, options.namespace)
    listed = {one.login: await _repositories(api, one.login, options, show) for one in places}
    every = [one for each in listed.values() for one in each.nodes.values()]
    files = hosted_files(api, options, every)
    memberships, organizations = Memberships(api.memory, api.host), list[_Organization]()
    for place in places:
        show(f"Reading the people of {place.login}")
        people = await read_people(api, place.login) if options.people else None
        known = await _with_teams(api.memory, place, people, memberships) if people else place
        organizations.append(_Organization(known, api.memory, options, people, left_out))
    await memberships.compare()
    found: list[SnapshotPart] = []
    for organization in organizations:
        show(f"Reading the files of {organization.place.login}")
        found += await organization.repositories(listed[organization.place.login], files)
        found += organization.people_parts(memberships)
    await files.remember()
    return Snapshot(tuple(found), left_out)


async def _repositories(
    api: GithubApi, login: str, options: GithubImportOptions, show: Callable[[str], None]
) -> Listing[ListedRepository]:
    def told(done: int, total: int) -> None:
        show(f"Read {done:,} of {total:,} repositories of {login}")

    document = queries.repositories(len(options.files))
    query = ListingQuery(document, file_variables(options), _REPOSITORIES_IN_PAGE)
    return await listing(api, login, query, ListedRepository, told)


def file_variables(options: GithubImportOptions) -> dict[str, str]:
    """The expressions of the files that are read of each repository."""
    paths = {f"e{i}": f"{HEAD}:{path}" for i, path in enumerate(options.files)}
    owners = {f"c{i}": f"{HEAD}:{path}" for i, path in enumerate(queries.CODEOWNERS)}
    return {**paths, **owners}


async def _with_teams(
    memory: Memory, place: Place, people: People, memberships: Memberships
) -> Place:
    """The place with the names of its teams, whose members are added to the memberships."""
    slugs = {slug.lower(): slug for slug in people.teams}
    numbers = {slug.lower(): team.listed.database_id for slug, team in people.teams.items()}
    complete = not people.missing
    place = await with_groups(memory, place, slugs, numbers, complete=complete)
    groups = {
        member.database_id: [
            place.ref("group", slug)
            for slug, team in people.teams.items()
            if member.login in team.logins
        ]
        for member in people.members
    }
    whole = complete and not people.missing_members
    memberships.add(place, groups, certain=complete, complete=whole)
    return place


def hosted_files(
    api: GithubApi, options: GithubImportOptions, listed: Iterable[ListedRepository]
) -> HostedFiles:
    """The files of listed repositories."""
    # Those whose commit could not be read are as those that are not listed.
    every = [one for one in listed if one.head is not None or one.is_empty]
    read = FileAddresses(api.host, addresses(api.host), options.organizations)
    calls, elsewhere = GithubFileCalls(api, every), api.elsewhere(options.text_bases)
    return HostedFiles(calls, api.memory, read, map(entities.hosted, every), elsewhere)


class _Organization:
    """Maker of the parts of one organization."""

    def __init__(
        self,
        place: Place,
        memory: Memory,
        options: GithubImportOptions,
        people: People | None,
        left_out: Counter[str],
    ) -> None:
        self.place = place
        self._memory = memory
        self._options = options
        self._people = people
        self._left_out = left_out

    async def repositories(
        self, listed: Listing[ListedRepository], files: HostedFiles
    ) -> list[SnapshotPart]:
        """The part of the repositories, and that of people whom their files may add."""
        nodes = listed.nodes.values()
        hosted = await named(
            self._memory, self.place, map(entities.hosted, nodes), complete=not listed.missing
        )
        wanted = parts.chosen(hosted, self._options, self._left_out, "repositories")
        roots = {one.database_id: root(one, self._options, _missing(listed, one)) for one in nodes}
        former = await former_names(self._memory, self.place, hosted)
        owners = TeamOwners.of(self._people, listed.nodes)
        await owners.keep(self._memory, self.place)
        owner_of = partial(owners.of_repository, self.place)
        people_from = self._options.people_from
        part = RepositoryPart(
            self.place, "repository", "repositories", owner_of, former, people_from
        )
        await part.read(wanted, roots, files, whole=not listed.missing)
        visible = {f"{one.visibility.lower()} repositories" for one in nodes}
        made = part.part(listed.missing, visible | listed.rights, hosted)
        return [made, *part.people(made)]

    def people_parts(self, memberships: Memberships) -> list[SnapshotPart]:
        """The parts of the teams and members, if people are imported."""
        if self._people is None:
            return []
        return [self._teams(self._people), self._members(self._people, memberships)]

    def _teams(self, people: People) -> SnapshotPart:
        """The part of the teams; secret ones are left out."""
        if people.secret:
            self._left_out["secret teams"] += people.secret
        items = [
            parts.person(
                self.place,
                "team",
                team.listed.database_id,
                entities.group(self.place, team.listed),
                team.listed,
            )
            for team in people.teams.values()
        ]
        return parts.people_part(self.place, "teams", items, people.missing, people.rights)

    def _members(self, people: People, memberships: Memberships) -> SnapshotPart:
        """The part of the members, who change nothing while their teams are not known."""
        items = []
        for member in people.members:
            number = member.database_id
            if not memberships.first(number):
                continue
            entity = entities.user(self.place, member, memberships.of(number))
            some = memberships.uncertain(self.place, number)
            items.append(parts.person(self.place, "user", number, entity, member, tentative=some))
        missing = people.missing_members
        return parts.people_part(self.place, "members", items, missing, people.rights)


def root(
    one: ListedRepository, options: GithubImportOptions, missing: list[Missing]
) -> RootContent:
    """The files of a repository that its import begins with."""
    found = zip(options.files, one.catalog_files, strict=False)
    catalog = next(((path, blob.content()) for path, blob in found if blob), None)
    return RootContent(catalog, one.codeowners.text if one.codeowners else None, missing)


def _missing(listed: Listing[ListedRepository], one: ListedRepository) -> list[Missing]:
    return [error.missing for error in listed.errors.get(one.database_id, ())]
