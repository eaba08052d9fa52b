"""Reading of GitHub organizations: repositories, their catalog files, teams and members."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.importers.catalog_info import reader
from factbook.importers.catalog_info.locations import FileLocation
from factbook.importers.catalog_info.reader import RepositoryReading, RootFile
from factbook.importers.github import entities, queries
from factbook.importers.github.answers import GithubBlob, ListedRepository
from factbook.importers.github.entities import Place
from factbook.importers.github.files import HEAD, GithubFiles
from factbook.importers.github.lists import Listing, ListingQuery, listing
from factbook.importers.github.options import GithubImportOptions
from factbook.importers.github.teams import People, owner_of, read_people
from factbook.importers.snapshot import ImportedItem, ReadingProblem, Snapshot, SnapshotPart
from factbook.integrations.github.graphql import GithubApi
from factbook.outbound.outcomes import Missing

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
    every = [one for found in listed.values() for one in found.nodes.values()]
    files = GithubFiles(api, options.organizations, every)
    parts: list[SnapshotPart] = []
    for login, found in listed.items():
        several = len(options.organizations) > 1
        place = Place(api.host, login, login.lower() if several else DEFAULT_NAMESPACE)
        show(f"Reading the people and files of {login}")
        people = await read_people(api, login) if options.people else None
        organization = _Organization(place, options, found, people, left_out)
        parts.append(await organization.repositories(files))
        if people is not None:
            parts += [organization.teams(people), organization.members(people)]
    await files.remember()
    return Snapshot(tuple(parts), left_out)


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


class _Organization:
    """Maker of the parts of one organization."""

    def __init__(
        self,
        place: Place,
        options: GithubImportOptions,
        listed: Listing[ListedRepository],
        people: People | None,
        left_out: Counter[str],
    ) -> None:
        self._place = place
        self._options = options
        self._listed = listed
        self._people = people
        self._left_out = left_out
        self._problems: list[ReadingProblem] = []
        self._unread: set[str] = set()

    async def repositories(self, files: GithubFiles) -> SnapshotPart:
        """The part of the repositories."""
        wanted = [one for one in self._listed.nodes.values() if not self._is_left_out(one)]
        roots = dict(self._roots(wanted))
        read = await reader.read(list(roots.values()), files)
        items: list[ImportedItem] = []
        for one in wanted:
            origin = self._place.repository(one)
            if origin in read:
                items += self._of_files(one, read[origin])
            elif origin not in self._unread:
                items.append(self._made(one))
        rights = {f"{one.visibility.lower()} repositories" for one in self._listed.nodes.values()}
        return self._part(items, self._listed.missing, rights)

    def teams(self, people: People) -> SnapshotPart:
        """The part of the teams; secret ones are left out."""
        if people.secret:
            self._left_out["secret teams"] += people.secret
        items = [
            self._person("team", team.listed.database_id, entities.group(self._place, team.listed))
            for team in people.teams.values()
        ]
        return self._part_of_people("teams", items, people.missing, people.rights)

    def members(self, people: People) -> SnapshotPart:
        """The part of the members, who change nothing while their teams are not known."""
        items = []
        for member in people.members:
            teams = [slug for slug, team in people.teams.items() if member.login in team.logins]
            entity = entities.user(self._place, member, teams)
            number, some = member.database_id, bool(people.missing)
            items.append(self._person("user", number, entity, tentative=some))
        return self._part_of_people("members", items, people.missing_members, people.rights)

    def _part_of_people(
        self, word: str, items: list[ImportedItem], missing: list[Missing], rights: Iterable[str]
    ) -> SnapshotPart:
        problems = [self._whole(f"{word}: {each.reason}") for each in missing]
        key = f"{self._place.login.lower()}.{word}"
        complete = not missing
        rights = frozenset(rights)
        return SnapshotPart(key, complete, tuple(items), tuple(problems), rights=rights)

    def _part(
        self, items: list[ImportedItem], missing: Missing | None, rights: Iterable[str]
    ) -> SnapshotPart:
        problems = list(self._problems)
        if missing is not None:
            problems.append(self._whole(f"repositories: {missing.reason}"))
        return SnapshotPart(
            f"{self._place.login.lower()}.repositories",
            missing is None,
            tuple(items),
            tuple(problems),
            frozenset(self._unread),
            frozenset({*rights, *self._listed.rights}),
        )

    def _whole(self, message: str) -> ReadingProblem:
        return ReadingProblem(self._place.origin, message)

    def _is_left_out(self, one: ListedRepository) -> bool:
        if one.is_archived and not self._options.archived:
            self._left_out["archived repositories"] += 1
            return True
        if one.is_fork and not self._options.forks:
            self._left_out["forks"] += 1
            return True
        return False

    def _roots(self, wanted: Iterable[ListedRepository]) -> Iterator[tuple[str, RootFile]]:
        """The root file of each repository that has one; notes those that cannot be read."""
        for one in wanted:
            origin = self._place.repository(one)
            for error in self._listed.errors.get(one.database_id, ()):
                text = f"a file cannot be read: {error.missing.reason}"
                self._cannot(origin, ReadingProblem(origin, text))
            found = zip(self._options.files, one.catalog_files, strict=False)
            path, blob = next((pair for pair in found if pair[1]), ("", None))
            if blob is None or origin in self._unread:
                continue
            content = blob.content()
            if isinstance(content, Missing):
                self._cannot(origin, ReadingProblem(origin, content.reason, path))
            else:
                location = FileLocation(one.name_with_owner, HEAD, path)
                yield origin, RootFile(origin, location, content)

    def _cannot(self, origin: str, problem: ReadingProblem) -> None:
        self._problems.append(problem)
        self._unread.add(origin)

    def _of_files(
        self, one: ListedRepository, reading: RepositoryReading
    ) -> Iterator[ImportedItem]:
        """The entities of a repository's files; the only component is the repository itself."""
        origin = self._place.repository(one)
        self._problems += reading.problems
        if not reading.whole:
            self._unread.add(origin)
        components = [each for each in reading.entities if _is_component(each.entity)]
        for each in reading.entities:
            path = each.location.path
            is_own = each.location.repository == one.name_with_owner
            given = entities.annotated(self._place, one, each.entity, path)
            yield ImportedItem(
                given if is_own else each.entity,
                origin,
                self._id(one) if components == [each] else "",
                path if is_own else f"{each.location.repository}/{path}",
                each.document.line,
                each.document.lines,
            )

    def _made(self, one: ListedRepository) -> ImportedItem:
        """The component of a repository without a catalog file.

        While the teams are not known, an owner may be missing that was known before.
        """
        teams = self._people.teams if self._people and not self._people.missing else None
        owner = self._codeowner(one.codeowners, teams)
        uncertain = owner is None and self._people is not None and teams is None
        if owner is None and teams is not None:
            slug = owner_of(one.database_id, teams)
            owner = slug and self._place.ref("group", slug)
        entity = entities.component(self._place, one, owner)
        origin = self._place.repository(one)
        return ImportedItem(entity, origin, self._id(one), tentative=uncertain)

    def _codeowner(self, blob: GithubBlob | None, teams: Mapping[str, object] | None) -> str | None:
        if blob is None or blob.text is None:
            return None
        return entities.codeowner(self._place, blob.text, teams)

    def _id(self, one: ListedRepository) -> str:
        return self._place.id_of("repository", one.database_id)

    def _person(
        self, kind: str, number: int, entity: dict[str, Any], *, tentative: bool = False
    ) -> ImportedItem:
        external_id = self._place.id_of(kind, number)
        return ImportedItem(entity, external_id, external_id, tentative=tentative)


def _is_component(entity: Mapping[str, Any]) -> bool:
    return str(entity.get("kind", "")).lower() == "component"
