"""Reading of GitHub organizations: repositories, their catalog files, teams and members."""

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from factbook.importers.code_host import parts
from factbook.importers.code_host.files import HEAD, FileAddresses, HostedFiles
from factbook.importers.code_host.names import former_names
from factbook.importers.code_host.parts import RepositoryPart
from factbook.importers.code_host.repository import (
    HostedRepository,
    Ownership,
    Place,
    RootContent,
    namespace,
)
from factbook.importers.github import entities, queries
from factbook.importers.github.answers import ListedRepository
from factbook.importers.github.files import ADDRESS, GithubFileCalls
from factbook.importers.github.lists import Listing, ListingQuery, listing
from factbook.importers.github.options import GithubImportOptions
from factbook.importers.github.teams import People, owner_of, read_people
from factbook.importers.snapshot import Snapshot, SnapshotPart
from factbook.integrations.github.graphql import GithubApi
from factbook.outbound import Memory

_REPOSITORIES_IN_PAGE: Final = 50


async def read(
    api: GithubApi, options: GithubImportOptions, show: Callable[[str], None] = lambda text: None
) -> Snapshot:
    """A snapshot of the organizations: parts for the repositories, teams and members of each.

    `show` is told what is being read.
    """
    left_out: Counter[str] = Counter()
    listed = {
        login: await _repositories(api, login, options, show) for login in options.organizations
    }
    files = _files(api, options, [one for each in listed.values() for one in each.nodes.values()])
    found: list[SnapshotPart] = []
    for login, repositories in listed.items():
        several = len(options.organizations) > 1
        place = Place(api.host, login, namespace(login, several=several))
        show(f"Reading the people and files of {login}")
        people = await read_people(api, login) if options.people else None
        organization = _Organization(place, api.memory, options, people, left_out)
        found.append(await organization.repositories(repositories, files))
        if people is not None:
            found += [organization.teams(people), organization.members(people)]
    await files.remember()
    return Snapshot(tuple(found), left_out)


async def _repositories(
    api: GithubApi, login: str, options: GithubImportOptions, show: Callable[[str], None]
) -> Listing[ListedRepository]:
    def told(done: int, total: int) -> None:
        show(f"Read {done:,} of {total:,} repositories of {login}")

    paths = {f"e{i}": f"{HEAD}:{path}" for i, path in enumerate(options.files)}
    owners = {f"c{i}": f"{HEAD}:{path}" for i, path in enumerate(queries.CODEOWNERS)}
    document = queries.repositories(len(options.files))
    query = ListingQuery(document, {**paths, **owners}, _REPOSITORIES_IN_PAGE)
    return await listing(api, login, query, ListedRepository, told)


def _files(
    api: GithubApi, options: GithubImportOptions, listed: Iterable[ListedRepository]
) -> HostedFiles:
    # Those whose commit could not be read are as those that are not listed.
    every = [one for one in listed if one.head is not None or one.is_empty]
    addresses = FileAddresses(api.host, ADDRESS, options.organizations)
    calls = GithubFileCalls(api, every)
    return HostedFiles(calls, api.memory, addresses, map(entities.hosted, every))


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
        self._place = place
        self._memory = memory
        self._options = options
        self._people = people
        self._left_out = left_out

    async def repositories(
        self, listed: Listing[ListedRepository], files: HostedFiles
    ) -> SnapshotPart:
        """The part of the repositories."""
        nodes = listed.nodes.values()
        hosted = [entities.hosted(one) for one in nodes]
        wanted = parts.chosen(hosted, self._options, self._left_out, "repositories")
        roots = {one.database_id: self._root(one, listed) for one in nodes}
        former = await former_names(self._memory, self._place, hosted)
        part = RepositoryPart(self._place, "repository", "repositories", self._owner, former)
        await part.read(wanted, roots, files)
        visible = {f"{one.visibility.lower()} repositories" for one in nodes}
        return part.part(listed.missing, visible | listed.rights)

    def teams(self, people: People) -> SnapshotPart:
        """The part of the teams; secret ones are left out."""
        if people.secret:
            self._left_out["secret teams"] += people.secret
        items = [
            parts.person(
                self._place,
                "team",
                team.listed.database_id,
                entities.group(self._place, team.listed),
                team.listed,
            )
            for team in people.teams.values()
        ]
        return parts.people_part(self._place, "teams", items, people.missing, people.rights)

    def members(self, people: People) -> SnapshotPart:
        """The part of the members, who change nothing while their teams are not known."""
        items = []
        for member in people.members:
            teams = [slug for slug, team in people.teams.items() if member.login in team.logins]
            entity = entities.user(self._place, member, teams)
            number, some = member.database_id, bool(people.missing)
            items.append(parts.person(self._place, "user", number, entity, member, tentative=some))
        missing = people.missing_members
        return parts.people_part(self._place, "members", items, missing, people.rights)

    def _root(self, one: ListedRepository, listed: Listing[ListedRepository]) -> RootContent:
        found = zip(self._options.files, one.catalog_files, strict=False)
        catalog = next(((path, blob.content()) for path, blob in found if blob), None)
        errors = [error.missing for error in listed.errors.get(one.database_id, ())]
        owners = one.codeowners.text if one.codeowners else None
        return RootContent(catalog, owners, errors)

    def _owner(self, one: HostedRepository, root: RootContent) -> Ownership:
        """The owner by CODEOWNERS, then the only team that administers or maintains it.

        While the teams are not known, an owner may be missing that was known before.
        """
        teams = self._people.teams if self._people and not self._people.missing else None
        if root.codeowners is not None:
            ref = entities.codeowner(self._place, root.codeowners, teams)
            if ref is not None:
                return Ownership(ref)
        if teams is None:
            return Ownership(None, certain=self._people is None)
        slug = owner_of(one.number, teams)
        return Ownership(slug and self._place.ref("group", slug))
