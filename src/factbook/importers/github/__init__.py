"""Importer of GitHub organizations: repositories, their catalog files, teams and members.

GitHub events are verified by signature, and name repositories to reread individually.
"""

import hmac
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Final, NamedTuple, Self, TypeVar

import msgspec

from factbook.errors import InputError
from factbook.importers import code_host_parts
from factbook.importers.code_host_parts import (
    Memberships,
    RepositoryPart,
    find_places,
    get_present_origins,
    name_components,
    name_groups,
    remember_former_names,
    restore_group_names,
)
from factbook.importers.code_hosts import (
    API_VERSION,
    HEAD,
    VIEW_URL,
    CodeHostImportOptions,
    Entity,
    FileAddresses,
    HostedFiles,
    HostedRepository,
    KnownOwners,
    Ownership,
    Place,
    RootContent,
    complete_options,
    find_owners_of_everything,
    make_metadata,
    make_reader,
)
from factbook.importers.github import queries
from factbook.importers.github.queries import (
    AccessPage,
    GithubFileCalls,
    ListedMember,
    ListedRepository,
    ListedTeam,
    Listing,
    ListingQuery,
    LoginPage,
    TeamAnswer,
    list_github_nodes,
    make_file_addresses,
)
from factbook.importers.importer import EventRules, ImporterKind
from factbook.importers.snapshot import ReadingProblem, Snapshot, SnapshotPart
from factbook.integrations.code_host import ConnectionPosition
from factbook.integrations.github.api import SLUG, GithubApi, GithubQueryError, decode_github_answer
from factbook.integrations.integration import get_stored_entry, store_entry
from factbook.outbound.cache import Memory
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome, report_too_many
from factbook.settings.option_tables import about

_SHORTEST_SECRET: Final = 16

_TEAM: Final = "github.com/team-slug"
_LOGIN: Final = "github.com/user-login"

Page = TypeVar("Page", LoginPage, AccessPage)

_TEAMS_IN_PAGE: Final = 25
_MEMBERS_IN_PAGE: Final = 100
# A team with more pages of members or repositories, of a hundred each, says nothing about owners.
_MOST_TEAM_PAGES: Final = 20

_REPOSITORIES_IN_PAGE: Final = 50

_HINTS_AT_ONCE: Final = 25

_SIGNATURE_HEADER: Final = b"x-hub-signature-256"
_DELIVERY_HEADER: Final = b"x-github-delivery"
_EVENT_HEADER: Final = b"x-github-event"
_BRANCH: Final = "refs/heads/"


class GithubImportOptions(CodeHostImportOptions, frozen=True, kw_only=True):
    """Organizations, and the parts to import."""

    organizations: Annotated[
        tuple[str, ...],
        about("Organizations to import. Empty: those of the integration."),
    ] = ()
    webhook_secret: Annotated[
        str, about("Secret. Key that GitHub signs events with; empty: no events are accepted.")
    ] = ""

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        if self.webhook_secret and len(self.webhook_secret) < _SHORTEST_SECRET:
            yield f"webhook_secret has to have {_SHORTEST_SECRET} characters at least"


def convert_github_repository(one: ListedRepository) -> HostedRepository:
    """A repository of a listing, as every code host lists them."""
    branch = one.default_branch_ref.name if one.default_branch_ref else "HEAD"
    return HostedRepository(
        number=one.database_id,
        slug=one.name_with_owner,
        name=one.name,
        url=one.url,
        tree=f"{one.url}/tree/{branch}/",
        branch=branch,
        version=one.head,
        annotations={SLUG: one.name_with_owner},
        description=one.description,
        topics=one.topics,
        language=one.primary_language.name if one.primary_language else "",
        is_archived=one.is_archived,
        is_fork=one.is_fork,
    )


def make_github_group(place: Place, team: ListedTeam) -> Entity:
    """The group of a team."""
    spec: Entity = {"type": "team", "profile": {"displayName": team.name}, "children": []}
    # Secret teams are not imported as groups.
    if team.parent_team is not None and team.parent_team.slug.lower() in place.groups:
        spec["parent"] = place.ref("group", team.parent_team.slug)
    made = make_metadata(place, "group", team.slug, team.description)
    made["annotations"] = {_TEAM: f"{place.login}/{team.slug}", VIEW_URL: team.url}
    return {"apiVersion": API_VERSION, "kind": "Group", "metadata": made, "spec": spec}


def make_github_user(place: Place, member: ListedMember, groups: Sequence[str]) -> Entity:
    """The user of a member; `groups` are references."""
    profile = {"picture": member.avatar_url}
    if member.name and member.name.strip():
        profile["displayName"] = member.name.strip()
    spec = {"profile": profile, "memberOf": groups}
    made = make_metadata(place, "user", member.login, None)
    made["annotations"] = {_LOGIN: member.login, VIEW_URL: member.url}
    return {"apiVersion": API_VERSION, "kind": "User", "metadata": made, "spec": spec}


@dataclass
class Team:
    """Team with its members; `permissions` are by repository."""

    listed: ListedTeam
    logins: set[str] = field(default_factory=set)
    permissions: dict[int, str] = field(default_factory=dict)


@dataclass
class People:
    """The teams by slug and the members of an organization.

    `missing` has the unread parts of teams, `missing_members` of members. Secret teams are only
    counted.
    """

    teams: dict[str, Team]
    members: list[ListedMember]
    missing: list[Missing]
    missing_members: list[Missing]
    rights: set[str]
    secret: int

    @property
    def logins(self) -> set[str] | None:
        """The logins of the members in lower case; None if some may be hidden.

        An account that sees teams sees all members. Other accounts see only public members.
        """
        if self.missing_members or not (self.teams or self.secret):
            return None
        return {one.login.lower() for one in self.members}


async def read_people(api: GithubApi, login: str) -> People:
    """The teams and members of an organization."""
    query = ListingQuery(queries.TEAMS, {}, _TEAMS_IN_PAGE)
    teams = await list_github_nodes(api, login, query, ListedTeam)
    missing = [teams.missing] if teams.missing else []
    found: dict[str, Team] = {}
    shown = [one for one in teams.nodes.values() if one.privacy == "VISIBLE"]
    for one in shown:
        team, lost = await _complete_team(api, login, one)
        found[one.slug] = team
        missing += lost
    query = ListingQuery(queries.MEMBERS, {}, _MEMBERS_IN_PAGE)
    members = await list_github_nodes(api, login, query, ListedMember)
    missing += [error.missing for error in _list_errors(teams)]
    lost = [members.missing] if members.missing else []
    lost += [error.missing for error in _list_errors(members)]
    secret = len(teams.nodes) - len(shown)
    return People(found, list(members.nodes.values()), missing, lost, teams.rights, secret)


def _list_errors(found: Listing[Any]) -> list[Any]:
    return [error for errors in found.errors.values() for error in errors]


async def _complete_team(
    api: GithubApi, login: str, listed: ListedTeam
) -> tuple[Team, list[Missing]]:
    """A team with the further pages of its members and repositories."""
    team = Team(listed)
    rest = _Rest(api, login, listed.slug)
    logins = await rest.pages(queries.TEAM_MEMBERS, listed.members, LoginPage)
    for page in logins:
        team.logins |= {node.login for node in page.nodes if node}
    access = await rest.pages(queries.TEAM_REPOSITORIES, listed.repositories, AccessPage)
    for each in access:
        for edge in each.edges:
            if edge and edge.node.database_id is not None:
                team.permissions[edge.node.database_id] = edge.permission
    return team, rest.missing


class _Rest:
    """Reader of the further pages of one team."""

    def __init__(self, api: GithubApi, login: str, slug: str) -> None:
        self._api = api
        self._variables = {"login": login, "team": slug}
        self.missing: list[Missing] = []

    async def pages(self, document: str, first: Page, type_: type[Page]) -> list[Page]:
        """The first page and all after it."""
        found = [first]
        position: ConnectionPosition = first.page_info
        while position.has_next_page:
            if len(found) == _MOST_TEAM_PAGES:
                self.missing.append(report_too_many(_MOST_TEAM_PAGES * 100, "entries of one team"))
                break
            page = await self._page(document, position.end_cursor, type_)
            if isinstance(page, Missing):
                self.missing.append(page)
                break
            found.append(page)
            position = page.page_info
        return found

    async def _page(self, document: str, after: str | None, type_: type[Page]) -> Page | Missing:
        told = await self._api.ask(document, {**self._variables, "after": after})
        answer = decode_github_answer(told.data.get("organization", b""), TeamAnswer)
        if answer is None or answer.team is None:
            return told.failure or (told.errors[0].missing if told.errors else UNUSABLE)
        page = decode_github_answer(answer.team.page, type_)
        return page if isinstance(page, type_) else UNUSABLE


def find_only_owner(repository: int, teams: dict[str, Team]) -> str | None:
    """The only team that administers a repository, else the only one that maintains it."""
    for permission in ("ADMIN", "MAINTAIN"):
        slugs = [
            slug for slug, team in teams.items() if team.permissions.get(repository) == permission
        ]
        if len(slugs) == 1:
            return slugs[0]
        if slugs:
            return None
    return None


class _KeptOwners(msgspec.Struct, array_like=True):
    """The slugs of the teams, and the owner's slug of each repository, empty for none.

    `logins` are those of the members, None if they are not known.
    """

    slugs: list[str]
    owners: dict[int, str]
    logins: list[str] | None = None


class TeamOwners(NamedTuple):
    """Owners by team: `slugs` are those of the teams, None if unknown.

    `owners` has the repositories that were read with them. Teams are not `expected` if people are
    not imported. `logins` are those of the members, None if unknown.
    """

    slugs: Collection[str] | None
    owners: Mapping[int, str]
    expected: bool
    logins: Collection[str] | None = None

    @classmethod
    def of(cls, people: People | None, numbers: Iterable[int]) -> Self:
        """The owners of these repositories, by what was read of the teams."""
        if people is None or people.missing:
            return cls(None, {}, people is not None)
        owners = {number: find_only_owner(number, people.teams) or "" for number in numbers}
        return cls(list(people.teams), owners, True, people.logins)

    @classmethod
    async def kept(cls, memory: Memory, place: Place, *, expected: bool) -> Self:
        """The owners from the last full reading."""
        found = (
            await get_stored_entry(memory, _make_owners_key(place), _KeptOwners)
            if expected
            else None
        )
        if found is None:
            return cls(None, {}, expected)
        return cls(found.slugs, found.owners, True, found.logins)

    async def keep(self, memory: Memory, place: Place) -> None:
        """Keep the owners for later readings, if known."""
        if self.slugs is not None:
            logins = None if self.logins is None else sorted(self.logins)
            kept = _KeptOwners(list(self.slugs), {**self.owners}, logins)
            await store_entry(memory, _make_owners_key(place), kept)

    def of_repository(self, place: Place, one: HostedRepository, root: RootContent) -> Ownership:
        """The owner by CODEOWNERS, then the only team that administers or maintains it.

        While teams are unknown, a previously known owner may be missing.
        """
        if root.codeowners is not None:
            known = KnownOwners(self.slugs, self.logins)
            ref = known.first(place, find_owners_of_everything(root.codeowners))
            if ref is not None:
                return Ownership(ref)
        slug = self.owners.get(one.number)
        if self.slugs is None or slug is None:
            return Ownership(None, certain=not self.expected)
        return Ownership(place.ref("group", slug) if slug else None)


def _make_owners_key(place: Place) -> str:
    return f"owners:{place.origin}"


async def read_github(
    api: GithubApi, options: GithubImportOptions, show: Callable[[str], None] = lambda text: None
) -> Snapshot:
    """A snapshot of the organizations: parts for the repositories, teams and members of each.

    `show` is called with the current step.
    """
    left_out: Counter[str] = Counter()
    places = await find_places(api.memory, api.host, options.organizations, options.namespace)
    listed = {one.login: await _list_repositories(api, one.login, options, show) for one in places}
    every = [one for each in listed.values() for one in each.nodes.values()]
    files = open_hosted_files(api, options, every)
    memberships, organizations = Memberships(api.memory, api.host), list[_Organization]()
    for place in places:
        show(f"Reading the people of {place.login}")
        people = await read_people(api, place.login) if options.people else None
        known = (
            await _name_github_teams(api.memory, place, people, memberships) if people else place
        )
        organizations.append(_Organization(known, api.memory, options, people, left_out))
    await memberships.compare()
    found: list[SnapshotPart] = []
    for organization in organizations:
        show(f"Reading the files of {organization.place.login}")
        found += await organization.repositories(listed[organization.place.login], files)
        found += organization.people_parts(memberships)
    await files.remember()
    return Snapshot(tuple(found), left_out)


async def _list_repositories(
    api: GithubApi, login: str, options: GithubImportOptions, show: Callable[[str], None]
) -> Listing[ListedRepository]:
    def told(done: int, total: int) -> None:
        show(f"Read {done:,} of {total:,} repositories of {login}")

    document = queries.make_repositories_query(len(options.files))
    query = ListingQuery(document, make_file_variables(options), _REPOSITORIES_IN_PAGE)
    return await list_github_nodes(api, login, query, ListedRepository, told)


def make_file_variables(options: GithubImportOptions) -> dict[str, str]:
    """The expressions of the files that are read of each repository."""
    paths = {f"e{i}": f"{HEAD}:{path}" for i, path in enumerate(options.files)}
    owners = {f"c{i}": f"{HEAD}:{path}" for i, path in enumerate(queries.CODEOWNERS_FILES)}
    return {**paths, **owners}


async def _name_github_teams(
    memory: Memory, place: Place, people: People, memberships: Memberships
) -> Place:
    """The place with the names of its teams, whose members are added to the memberships."""
    slugs = {slug.lower(): slug for slug in people.teams}
    numbers = {slug.lower(): team.listed.database_id for slug, team in people.teams.items()}
    complete = not people.missing
    place = await name_groups(memory, place, slugs, numbers, complete=complete)
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


def open_hosted_files(
    api: GithubApi, options: GithubImportOptions, listed: Iterable[ListedRepository]
) -> HostedFiles:
    """The files of listed repositories."""
    # Repositories with an unreadable commit are treated as unlisted.
    every = [one for one in listed if one.head is not None or one.is_empty]
    read = FileAddresses(api.host, make_file_addresses(api.host), options.organizations)
    calls, elsewhere = GithubFileCalls(api, every), api.elsewhere(options.text_bases)
    return HostedFiles(calls, api.memory, read, map(convert_github_repository, every), elsewhere)


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
        hosted = await name_components(
            self._memory,
            self.place,
            map(convert_github_repository, nodes),
            complete=not listed.missing,
        )
        wanted = code_host_parts.choose_repositories(
            hosted, self._options, self._left_out, "repositories"
        )
        roots = {
            one.database_id: make_root_content(
                one,
                self._options,
                [error.missing for error in listed.errors.get(one.database_id, ())],
            )
            for one in nodes
        }
        former = await remember_former_names(self._memory, self.place, hosted)
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
            code_host_parts.make_person(
                self.place,
                "team",
                team.listed.database_id,
                make_github_group(self.place, team.listed),
                team.listed,
            )
            for team in people.teams.values()
        ]
        return code_host_parts.make_people_part(
            self.place, "teams", items, people.missing, people.rights
        )

    def _members(self, people: People, memberships: Memberships) -> SnapshotPart:
        """The part of the members, tentative while their teams are unknown."""
        items = []
        for member in people.members:
            number = member.database_id
            if not memberships.first(number):
                continue
            entity = make_github_user(self.place, member, memberships.of(number))
            some = memberships.uncertain(self.place, number)
            items.append(
                code_host_parts.make_person(
                    self.place, "user", number, entity, member, tentative=some
                )
            )
        missing = people.missing_members
        return code_host_parts.make_people_part(
            self.place, "members", items, missing, people.rights
        )


def make_root_content(
    one: ListedRepository, options: GithubImportOptions, missing: list[Missing]
) -> RootContent:
    """The root files of a repository."""
    found = zip(options.files, one.catalog_files, strict=False)
    catalog = next(((path, blob.content()) for path, blob in found if blob), None)
    return RootContent(catalog, one.codeowners.text if one.codeowners else None, missing)


class RepositoryHint(NamedTuple):
    """Repository of an event: its node id, and its path in the event."""

    node: str
    slug: str

    def __str__(self) -> str:
        return f"{self.node} {self.slug}"

    @classmethod
    def of(cls, text: str) -> Self:
        """The hint parsed from its text form."""
        node, _, slug = text.partition(" ")
        return cls(node, slug)

    @property
    def login(self) -> str:
        """The owner of the repository."""
        return self.slug.partition("/")[0]


@dataclass
class _Found:
    """Answers about the hinted repositories of one organization."""

    nodes: dict[int, ListedRepository] = field(default_factory=dict)
    errors: dict[int, list[GithubQueryError]] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    problems: list[ReadingProblem] = field(default_factory=list)


async def reread_github(
    api: GithubApi, options: GithubImportOptions, hints: Sequence[str]
) -> Snapshot:
    """A snapshot of only the hinted repositories, as GitHub shows them now.

    A repository unknown to GitHub is lost; so is a repository that the credential can no longer
    see, which looks the same. Any other failure leaves the repository unread.
    """
    logins = {login.lower(): login for login in options.organizations}
    found = {login: _Found() for login in logins.values()}
    told = [RepositoryHint.of(text) for text in hints]
    wanted = [hint for hint in told if hint.login.lower() in logins]
    for start in range(0, len(wanted), _HINTS_AT_ONCE):
        await _ask_hinted(api, options, wanted[start : start + _HINTS_AT_ONCE], logins, found)
    made: list[SnapshotPart] = []
    places = await find_places(api.memory, api.host, logins.values(), options.namespace)
    for place in places:
        one = found[place.login]
        if one.nodes or one.lost or one.problems:
            known = await restore_group_names(api.memory, place) if options.people else place
            made += await _make_hinted_parts(api, options, known, one)
    return Snapshot(tuple(made))


async def _ask_hinted(
    api: GithubApi,
    options: GithubImportOptions,
    hints: Sequence[RepositoryHint],
    logins: Mapping[str, str],
    found: Mapping[str, _Found],
) -> None:
    """Ask for repositories, and sort the answers by the organizations of the hints."""
    document = queries.make_some_repositories_query(len(options.files))
    variables = {**make_file_variables(options), "ids": [hint.node for hint in hints]}
    told = await api.ask(document, variables)
    nodes = decode_github_answer(told.data.get("nodes", b""), list[msgspec.Raw]) or []
    by_place: dict[object, list[GithubQueryError]] = {}
    for error in told.errors:
        place = error.path[1] if len(error.path) > 1 and error.path[0] == "nodes" else None
        by_place.setdefault(place, []).append(error)
    for place, hint in enumerate(hints):
        node = decode_github_answer(nodes[place], ListedRepository) if place < len(nodes) else None
        errors = by_place.get(place, [])
        owner = node.name_with_owner.partition("/")[0].lower() if node else ""
        of_hint = found[logins[hint.login.lower()]]
        if node is not None and owner in logins:
            one = found[logins[owner]]
            one.nodes[node.database_id] = node
            one.errors[node.database_id] = errors
            continue
        missing = told.failure or (errors[0].missing if errors else UNUSABLE)
        if node is not None or missing.outcome is Outcome.NOT_FOUND:
            # The repository has an owner that is not imported, or no longer exists.
            of_hint.lost.add(hint.slug)
        else:
            text = f"it cannot be read again: {missing.reason}"
            of_hint.problems.append(ReadingProblem(f"{api.host}/{hint.slug}", text))


async def _make_hinted_parts(
    api: GithubApi, options: GithubImportOptions, place: Place, found: _Found
) -> list[SnapshotPart]:
    nodes = list(found.nodes.values())
    hosted = await name_components(
        api.memory, place, map(convert_github_repository, nodes), complete=False
    )
    former = await remember_former_names(api.memory, place, hosted)
    owners = await TeamOwners.kept(api.memory, place, expected=options.people)
    part = RepositoryPart(
        place,
        "repository",
        "repositories",
        partial(owners.of_repository, place),
        former,
        options.people_from,
    )
    roots = {
        one.database_id: make_root_content(
            one, options, [error.missing for error in found.errors[one.database_id]]
        )
        for one in nodes
    }
    files = open_hosted_files(api, options, nodes)
    wanted = code_host_parts.choose_repositories(hosted, options, Counter(), "repositories")
    await part.read(wanted, roots, files, whole=False)
    await files.remember()
    made = part.part(None, ())
    read = {place.origin_of(one.slug) for one in hosted}
    # A former name may belong to another repository by now.
    present = await get_present_origins(api.memory, place)
    read.update(*(former.get(origin, frozenset()) - present for origin in read.copy()))
    some = SnapshotPart(
        made.key,
        not found.problems,
        made.items,
        (*made.problems, *found.problems),
        made.unread,
        former=former,
        only=frozenset(read),
        lost=frozenset(map(place.origin_of, found.lost)) - read,
        stand_ins=made.stand_ins,
    )
    return [some, *part.people(some)]


class _EventRepository(msgspec.Struct):
    node_id: str
    full_name: str
    default_branch: str = ""


class _Event(msgspec.Struct):
    repository: _EventRepository | None = None
    ref: str = ""


def make_event_rules(options: GithubImportOptions) -> EventRules | None:
    """The rules for events, if there is a secret to verify them."""
    if not options.webhook_secret:
        return None
    key = options.webhook_secret.encode()

    def is_signed(headers: Mapping[bytes, bytes], body: bytes | bytearray) -> bool:
        expected = f"sha256={hmac.digest(key, body, 'sha256').hex()}".encode()
        return hmac.compare_digest(headers.get(_SIGNATURE_HEADER, b""), expected)

    return EventRules(
        is_signed,
        lambda headers: headers.get(_DELIVERY_HEADER, b"").decode("latin-1"),
        find_event_hints,
    )


def find_event_hints(headers: Mapping[bytes, bytes], body: bytes | bytearray) -> frozenset[str]:
    """The repository of a push to its default branch, or of a change of the repository itself.

    Empty for other events. Raises InputError for a body that is not an event.
    """
    name = headers.get(_EVENT_HEADER)
    if name not in (b"push", b"repository"):
        return frozenset()
    try:
        event = msgspec.json.decode(body, type=_Event)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise InputError("The body is not that of an event: send application/json.") from None
    found = event.repository
    if found is None or (name == b"push" and event.ref != _BRANCH + found.default_branch):
        return frozenset()
    return frozenset({str(RepositoryHint(found.node_id, found.full_name))})


IMPORTER: Final = ImporterKind(
    id="github",
    title="GitHub",
    options=GithubImportOptions,
    makes=("component", "group", "user"),
    read=make_reader(GithubApi, read_github),
    vendor="github",
    account_options=(
        "host",
        "token",
        "app_id",
        "installation_id",
        "private_key",
        "api_url",
        "graphql_url",
    ),
    owners="organizations",
    by_people=True,
    file_page="blob/HEAD/{}",
    completed=partial(complete_options, name="organizations", flag="--org"),
    events=make_event_rules,
    reread=make_reader(GithubApi, reread_github),
)
