"""Importer of Gitea and Forgejo organizations: repositories, catalog files, teams and members."""

import base64
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from factbook import text_files
from factbook.clock import DAY, MINUTE
from factbook.importers import code_host_parts
from factbook.importers.catalog_files import LARGEST_FILE, FileLocation
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
    HEAD,
    VIEW_URL,
    CodeHostImportOptions,
    Content,
    Entity,
    FileAddresses,
    HostedFiles,
    HostedRepository,
    KnownOwners,
    Ownership,
    Place,
    RootContent,
    Row,
    RowListing,
    complete_options,
    find_owners_of_everything,
    make_metadata,
    make_reader,
    repeat_until_agreed,
)
from factbook.importers.importer import ImporterKind, Show
from factbook.importers.snapshot import Snapshot, SnapshotPart, is_person_account, select_people
from factbook.integrations.code_host import Slug, convert_to_milliseconds
from factbook.integrations.gitea import list_gitea_paths
from factbook.integrations.gitea.api import PAGE, GiteaApi, GiteaRepository, GiteaTreePage, Moment
from factbook.integrations.integration import run_for_each
from factbook.outbound.cache import Memory
from factbook.outbound.client import build_path
from factbook.outbound.outcomes import UNUSABLE, Answer, Missing, Outcome, report_too_many
from factbook.settings.option_tables import about

_Name = Annotated[str, Meta(pattern=r"\A[\w.-]{1,255}\Z")]

# Gitea's patterns are regular expressions for whole paths; Git patterns are meant for GitHub.
_PATTERNS: Final = EVERYTHING | {".*", ".+", "(.*)", "^.*", ".*$", "^.*$"}
# Within this time, a later change may have the same timestamp.
_SETTLED: Final = MINUTE
_BELIEVED: Final = 7 * DAY

_MOST_PAGES: Final = 2_000

RowsOf = Callable[[Answer], Sequence[Any] | Missing]

# Older Gitea addresses have a branch name without a `branch` segment.
ADDRESSES: Final = (
    r"https?://{host}/api/v1/repos/(?P<slug>[^/]+/[^/]+)/(?:raw|media|contents)/(?P<path>.+)",
    r"https?://{host}/([^/]+/[^/]+)/(?:src|raw|media)/(?:branch|tag|commit)/(.+)",
    r"https?://{host}/([^/]+/[^/]+)/(?:src|raw|media)/(.+)",
)
_NOT_FOUND: Final = Missing(Outcome.NOT_FOUND)
_HIDDEN: Final = Missing(Outcome.DENIED, "the repository does not exist, or may not be read")
_CHANGED: Final = Missing(Outcome.INCOMPLETE, "the repository changed while it was read")

_Tree = tuple[str, str]

# Permissions that indicate ownership of a repository, strongest first.
_PERMISSIONS: Final = ("admin", "write")


_CODEOWNERS_FILES: Final = (
    "CODEOWNERS", "docs/CODEOWNERS", ".gitea/CODEOWNERS", ".forgejo/CODEOWNERS",
)  # fmt: skip
# Newest first: a row appended at the end would hide, in the total, a row that a removal moved to
# a page that was already read.
_EVERY_REPOSITORY: Final = {"exclusive": "true", "sort": "id", "order": "desc"}


class GiteaImportOptions(CodeHostImportOptions, frozen=True, kw_only=True):
    """Organizations, and the parts to import."""

    organizations: Annotated[
        tuple[str, ...],
        about("Organizations to import. Empty: those of the integration."),
    ] = ()


class OwnRepository(GiteaRepository, kw_only=True):
    """Repository of an organization."""

    html_url: str
    updated_at: Moment
    description: str = ""
    language: str = ""
    topics: list[str] | None = None
    private: bool = False
    archived: bool = False
    fork: bool = False


class GiteaContent(msgspec.Struct):
    """File of a repository, with its content in Base64."""

    type: str
    size: int
    content: str | None = None

    def content_of_file(self) -> Content:
        """The whole file, or the reason that it is not there."""
        if self.type != "file":
            return Missing(Outcome.NOT_APPLICABLE, f"it is not a file but a {self.type}")
        if self.size > LARGEST_FILE:
            return Missing(Outcome.TOO_LARGE, f"the file has {self.size:,} bytes")
        try:
            data = base64.b64decode(self.content or "", validate=True)
        except ValueError:
            return UNUSABLE
        return data if len(data) == self.size else UNUSABLE


class FoundRepositories(msgspec.Struct):
    """Page of a search; repositories are decoded one by one."""

    data: list[Any]


class GiteaOrganization(msgspec.Struct):
    """Organization."""

    id: int


class GiteaTeam(msgspec.Struct):
    """Team, with its permissions on its repositories."""

    id: int
    name: _Name
    description: str = ""
    permission: str = "none"
    includes_all_repositories: bool = False


class JoinedTeam(msgspec.Struct):
    """Team that an account is a member of, in one of its organizations."""

    id: int
    name: _Name
    organization: GiteaOrganization


class TeamRepository(msgspec.Struct):
    """Repository of a team."""

    id: int
    full_name: Slug


class GiteaMember(msgspec.Struct):
    """Member of an organization or team."""

    id: int
    login: _Name
    full_name: str = ""
    avatar_url: str = ""
    html_url: str = ""
    prohibit_login: bool = False

    @property
    def is_service(self) -> bool:
        """True for the accounts of Gitea itself, which have no number of their own."""
        return self.id <= 0

    @property
    def is_disabled(self) -> bool:
        """True for a person who may not sign in; only administrators see this."""
        return self.prohibit_login


class GiteaAccount(msgspec.Struct):
    """Account of the credential."""

    login: _Name


class GiteaPermissions(msgspec.Struct):
    """Rights of an account in an organization."""

    is_owner: bool = False


def convert_gitea_repository(api: GiteaApi, one: OwnRepository) -> HostedRepository:
    """A repository of a listing, as every code host lists them."""
    branch = one.default_branch or "HEAD"
    return HostedRepository(
        number=one.id,
        slug=one.full_name,
        name=one.full_name.partition("/")[2],
        url=one.html_url,
        tree=f"{one.html_url}/src/branch/{branch}/",
        branch=branch,
        version=_estimate_version(one, api.now),
        annotations={_name_gitea_annotation(api.host, "project-slug"): one.full_name},
        description=one.description,
        topics=one.topics or (),
        language=one.language,
        is_archived=one.archived,
        is_fork=one.fork,
    )


def make_gitea_group(place: Place, team: GiteaTeam) -> Entity:
    """The group of a team."""
    spec: Entity = {"type": "team", "profile": {"displayName": team.name}, "children": []}
    made = make_metadata(place, "group", team.name, team.description)
    url = f"https://{place.host}/org/{place.login}/teams/{team.name}"
    name = f"{place.login}/{team.name}"
    made["annotations"] = {_name_gitea_annotation(place.host, "team-slug"): name, VIEW_URL: url}
    return {"apiVersion": API_VERSION, "kind": "Group", "metadata": made, "spec": spec}


def make_gitea_user(place: Place, member: GiteaMember, groups: Sequence[str]) -> Entity:
    """The user of a member; `groups` are references."""
    profile = {"displayName": member.full_name.strip() or member.login}
    if member.avatar_url:
        profile["picture"] = member.avatar_url
    spec = {"profile": profile, "memberOf": groups}
    made = make_metadata(place, "user", member.login, None)
    url = member.html_url or f"https://{place.host}/{member.login}"
    made["annotations"] = {
        _name_gitea_annotation(place.host, "user-login"): member.login,
        VIEW_URL: url,
    }
    return {"apiVersion": API_VERSION, "kind": "User", "metadata": made, "spec": spec}


def find_codeowner(place: Place, text: str, known: KnownOwners) -> str | None:
    """The first known owner in the last CODEOWNERS line that matches every file."""
    return known.first(place, find_owners_of_everything(text, patterns=_PATTERNS))


def _estimate_version(one: OwnRepository, now: int) -> str | None:
    """A version that changes with each push, by Gitea's push time, and once a week.

    Mirrors, and repositories pushed so recently that another push may have the same time, get a
    new version at each reading. None for an empty repository.
    """
    if one.empty:
        return None
    updated = convert_to_milliseconds(one.updated_at)
    week = (now + one.id * MINUTE) // _BELIEVED
    text = f"{one.default_branch}:{updated}:{week}"
    is_sure = not one.mirror and now - updated > _SETTLED
    return text if is_sure else f"{text}:{now}"


def _name_gitea_annotation(host: str, name: str) -> str:
    """The name of an annotation of a host, which cannot have a port."""
    return f"{host.partition(':')[0]}/{name}"


def get_list_rows(answer: Answer) -> Sequence[Any] | Missing:
    """The rows of a list."""
    return answer.read_as(list[Any])


def get_search_rows(answer: Answer) -> Sequence[Any] | Missing:
    """The rows of a search."""
    found = answer.read_as(FoundRepositories)
    return found if isinstance(found, Missing) else found.data


async def list_gitea_rows(
    api: GiteaApi,
    target: str,
    type_: type[Row],
    rows_of: RowsOf = get_list_rows,
    **query: str | int,
) -> RowListing[Row]:
    """Every row of a list.

    A server may return smaller pages than requested, so the list ends at the total or an empty
    page. A failed page, an invalid row, or fewer rows than Gitea's count make the listing
    incomplete.
    """
    found, read = RowListing[Row](), 0
    for number in range(1, _MOST_PAGES + 1):
        answer = await api.get(target, page=number, limit=PAGE, **query)
        found.count(answer, "x-total-count")
        page = rows_of(answer)
        found.take(page, type_)
        if isinstance(page, Missing):
            return found
        read += len(page)
        if not page or (found.total is not None and read >= found.total):
            found.end()
            return found
    found.missing = found.missing or report_too_many(_MOST_PAGES, "pages of one list")
    return found


class GiteaFileCalls:
    """Calls for files of listed repositories, and of others."""

    def __init__(self, api: GiteaApi, listed: Iterable[OwnRepository]) -> None:
        self._api = api
        self._listed = {one.full_name: one for one in listed}

    async def contents(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, Content]:
        """The content of each of the files."""
        trees: dict[_Tree, list[FileLocation]] = {}
        for one in wanted:
            trees.setdefault((one.repository, one.ref), []).append(one)

        async def of(tree: _Tree) -> Mapping[FileLocation, Content]:
            return await self._of_tree(*tree, trees[tree])

        found: dict[FileLocation, Content] = {}
        for some in (await run_for_each(trees, of)).values():
            found |= some
        return found

    async def paths(self, repository: HostedRepository) -> Sequence[str] | Missing:
        """The paths of all files of a repository at its default branch."""
        return await list_gitea_paths(self._api, self._listed[repository.slug])

    async def _of_tree(
        self, slug: str, ref: str, wanted: Sequence[FileLocation]
    ) -> Mapping[FileLocation, Content]:
        """The files of one branch; files outside the root folder's entries are missing."""
        names = await self._root_folder(slug, ref)
        if isinstance(names, Missing):
            return dict.fromkeys(wanted, names)
        return {
            one: await self._file(one) if one.path.split("/")[0] in names else _NOT_FOUND
            for one in wanted
        }

    async def _root_folder(self, slug: str, ref: str) -> set[str] | Missing:
        """The names of everything in the root folder."""
        names: set[str] = set()
        number = 1
        while True:
            target = build_path("repos", *slug.split("/"), "git", "trees", ref)
            page = await self._api.one(target, GiteaTreePage, _HIDDEN, page=number)
            if isinstance(page, Missing):
                return page
            before = len(names)
            names |= {entry.path for entry in page.tree}
            if not page.truncated:
                return names
            if len(names) == before:
                return _CHANGED
            number += 1

    async def _file(self, location: FileLocation) -> Content:
        parts = *location.repository.split("/"), "contents", *location.path.split("/")
        query = {} if location.ref == HEAD else {"ref": location.ref}
        found = await self._api.one(build_path("repos", *parts), GiteaContent, None, **query)
        if isinstance(found, GiteaContent):
            return found.content_of_file()
        is_there = "/" not in location.path and found.outcome is Outcome.NOT_FOUND
        return _CHANGED if is_there else found


@dataclass
class Teams:
    """Teams by id, with the ids of their members and of their repositories.

    `missing` has the unread parts. `rights` are those of the credential: an owner sees
    everything, other accounts what their teams may see; each team is a right. `doubt` is the reason
    for unknown rights.
    """

    teams: dict[int, GiteaTeam] = field(default_factory=dict)
    members: dict[int, set[int]] = field(default_factory=dict)
    repositories: dict[int, set[int]] = field(default_factory=dict)
    missing: list[Missing] = field(default_factory=list)
    rights: set[str] = field(default_factory=set)
    doubt: Missing | None = None

    def of_member(self, member: GiteaMember) -> list[GiteaTeam]:
        """The teams of a member."""
        return [team for id_, team in self.teams.items() if member.id in self.members[id_]]

    def owner_of(self, repository: int) -> GiteaTeam | None:
        """The only team that administers a repository, else the only one that may write to it.

        Teams with access to all repositories are ignored.
        """
        for permission in _PERMISSIONS:
            found = [
                team
                for id_, team in self.teams.items()
                if team.permission == permission and repository in self.repositories[id_]
            ]
            if found:
                return found[0] if len(found) == 1 else None
        return None


async def read_gitea_teams(api: GiteaApi, organization: str, number: int, *, whole: bool) -> Teams:
    """The teams of an organization with this number.

    With their members and repositories if they are `whole`.
    """
    # For a team deleted while the list was read, the members request fails.
    listed = await list_gitea_rows(api, build_path("orgs", organization, "teams"), GiteaTeam)
    found = Teams(listed.rows)
    owner = await _is_organization_owner(api, organization)
    if isinstance(owner, Missing):
        found.doubt = owner
    elif owner:
        found.rights = {"ownership"}
    else:
        # Listed teams may be visible to everyone, without their members and repositories.
        joined = await list_gitea_rows(api, "/user/teams", JoinedTeam)
        own = (one for one in joined.rows.values() if one.organization.id == number)
        found.rights = {f"team {team.name}" for team in own}
        # An account without permission for this request has no teams, and sees public data.
        found.doubt = joined.missing if joined.missing and joined.missing.passing else None
    found.missing += [one for one in (listed.missing, found.doubt) if one and whole]
    if whole:
        await _complete_teams(api, found)
    return found


async def read_organization_members(api: GiteaApi, organization: str) -> RowListing[GiteaMember]:
    """The members of an organization."""
    target = build_path("orgs", organization, "members")
    return await repeat_until_agreed(lambda: list_gitea_rows(api, target, GiteaMember))


async def _complete_teams(api: GiteaApi, found: Teams) -> None:
    """Add the members and repositories of every team."""

    async def members(id_: int) -> RowListing[GiteaMember]:
        target = build_path("teams", str(id_), "members")
        return await repeat_until_agreed(lambda: list_gitea_rows(api, target, GiteaMember))

    async def repositories(id_: int) -> RowListing[TeamRepository]:
        if found.teams[id_].includes_all_repositories:
            return RowListing()
        target = build_path("teams", str(id_), "repos")
        return await repeat_until_agreed(lambda: list_gitea_rows(api, target, TeamRepository))

    for id_, people in (await run_for_each(found.teams, members)).items():
        found.members[id_] = set(people.rows)
        found.missing += [people.missing] if people.missing else []
    for id_, owned in (await run_for_each(found.teams, repositories)).items():
        found.repositories[id_] = set(owned.rows)
        found.missing += [owned.missing] if owned.missing else []


async def _is_organization_owner(api: GiteaApi, organization: str) -> bool | Missing:
    """True if the credential's account is an owner; false if unknown."""
    account = await api.one("/user", GiteaAccount)
    found: GiteaPermissions | Missing
    if isinstance(account, Missing):
        found = account
    else:
        target = build_path("users", account.login, "orgs", organization, "permissions")
        found = await api.one(target, GiteaPermissions)
    if isinstance(found, Missing):
        return found if found.passing else False
    return found.is_owner


@dataclass
class _ReadOrganization:
    """Everything of an organization except files; members are None if not requested."""

    place: Place
    listed: RowListing[OwnRepository]
    hosted: Sequence[HostedRepository]
    teams: Teams
    members: RowListing[GiteaMember] | None

    @property
    def owners(self) -> KnownOwners:
        """The teams and members; an account without a team sees only public ones."""
        if self.members is None or self.teams.missing:
            return KnownOwners(None, None)
        teams = {team.name.lower() for team in self.teams.teams.values()}
        if self.members.missing or not self.teams.rights:
            return KnownOwners(teams, None)
        people = {one.login.lower() for one in self.members.rows.values() if is_person_account(one)}
        return KnownOwners(teams, people)


async def read_gitea(
    api: GiteaApi, options: GiteaImportOptions, show: Show = lambda text: None
) -> Snapshot:
    """A snapshot of the organizations: parts for the repositories, teams and members of each.

    `show` is called with the current step.
    """
    memberships, read = Memberships(api.memory, api.host), []
    for place in await find_places(api.memory, api.host, options.organizations, options.namespace):
        show(f"Reading the repositories of {place.login}")
        one = await _read_organization(api, place, people=options.people)
        if one.members is not None:
            one = await _name_gitea_teams(api.memory, one, one.members, memberships)
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
        found += await _make_gitea_repository_parts(api, one, options, files, left_out)
        if one.members is not None:
            found += [
                _make_gitea_teams_part(one),
                _make_gitea_members_part(one, one.members, memberships, left_out),
            ]
    await files.remember()
    return Snapshot(tuple(found), left_out)


async def _name_gitea_teams(
    memory: Memory,
    one: _ReadOrganization,
    members: RowListing[GiteaMember],
    memberships: Memberships,
) -> _ReadOrganization:
    """The organization with the names of its teams, whose members are added to the memberships."""
    names = {team.name.lower(): team.name for team in one.teams.teams.values()}
    numbers = {team.name.lower(): team.id for team in one.teams.teams.values()}
    certain = not one.teams.missing
    place = await name_groups(memory, one.place, names, numbers, complete=certain)
    groups = {
        member.id: [place.ref("group", team.name) for team in one.teams.of_member(member)]
        for member in (members.rows.values() if certain else ())
    }
    complete = certain and not (members.missing or one.teams.doubt)
    memberships.add(place, groups, certain=certain, complete=complete)
    return replace(one, place=place)


async def _read_organization(api: GiteaApi, place: Place, *, people: bool) -> _ReadOrganization:
    """The repositories of an organization in the order of their making, and its people."""
    found = await api.one(build_path("orgs", place.login), GiteaOrganization)
    if isinstance(found, Missing):
        nothing = RowListing[OwnRepository](missing=found)
        members = RowListing[GiteaMember](missing=found) if people else None
        return _ReadOrganization(place, nothing, [], Teams(missing=[found]), members)
    listed = await list_gitea_rows(
        api, "/repos/search", OwnRepository, get_search_rows, uid=found.id, **_EVERY_REPOSITORY
    )
    listed.sort()
    hosted = [convert_gitea_repository(api, one) for one in listed.rows.values()]
    teams = await read_gitea_teams(api, place.login, found.id, whole=people)
    members = await read_organization_members(api, place.login) if people else None
    return _ReadOrganization(place, listed, hosted, teams, members)


async def _make_gitea_repository_parts(
    api: GiteaApi,
    one: _ReadOrganization,
    options: GiteaImportOptions,
    files: HostedFiles,
    left_out: Counter[str],
) -> list[SnapshotPart]:
    """The part of the repositories, and that of people whom their files may add."""
    complete = not (one.listed.missing or one.teams.doubt)
    hosted = await name_components(api.memory, one.place, one.hosted, complete=complete)
    wanted = code_host_parts.choose_repositories(hosted, options, left_out, "repositories")
    roots = await _read_gitea_roots(wanted, options.files, files)
    former = await remember_former_names(api.memory, one.place, hosted)

    def owner_of(repository: HostedRepository, root: RootContent) -> Ownership:
        return _find_gitea_owner(one, repository, root)

    part = RepositoryPart(
        one.place, "repository", "repositories", owner_of, former, options.people_from
    )
    await part.read(wanted, roots, files, whole=complete)
    rows = one.listed.rows.values()
    visible = {f"{'private' if row.private else 'public'} repositories" for row in rows}
    made = part.part(one.listed.missing or one.teams.doubt, visible | one.teams.rights, one.hosted)
    return [made, *part.people(made)]


async def _read_gitea_roots(
    wanted: Sequence[HostedRepository], names: Sequence[str], files: HostedFiles
) -> dict[int, RootContent]:
    """The root files of each repository."""
    places = {
        one.number: [FileLocation(one.slug, HEAD, name) for name in (*names, *_CODEOWNERS_FILES)]
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


def _find_gitea_owner(
    one: _ReadOrganization, repository: HostedRepository, root: RootContent
) -> Ownership:
    """The owner by CODEOWNERS, then the only team that administers or writes to it.

    While teams are unknown, a previously known owner may be missing.
    """
    is_known = one.members is not None and not one.teams.missing
    if root.codeowners is not None:
        ref = find_codeowner(one.place, root.codeowners, one.owners)
        if ref is not None:
            return Ownership(ref)
    if not is_known:
        return Ownership(None, certain=one.members is None)
    team = one.teams.owner_of(repository.number)
    return Ownership(one.place.ref("group", team.name) if team else None)


def _make_gitea_teams_part(one: _ReadOrganization) -> SnapshotPart:
    """The part of the teams."""
    items = [
        code_host_parts.make_person(
            one.place, "team", team.id, make_gitea_group(one.place, team), team
        )
        for team in one.teams.teams.values()
    ]
    return code_host_parts.make_people_part(
        one.place, "teams", items, one.teams.missing, one.teams.rights
    )


def _make_gitea_members_part(
    one: _ReadOrganization,
    members: RowListing[GiteaMember],
    memberships: Memberships,
    left_out: Counter[str],
) -> SnapshotPart:
    """The part of the members, tentative while their teams are unknown."""
    items = []
    for member in select_people(members.rows.values(), left_out):
        if not memberships.first(member.id):
            continue
        entity = make_gitea_user(one.place, member, memberships.of(member.id))
        some = memberships.uncertain(one.place, member.id)
        items.append(
            code_host_parts.make_person(
                one.place, "user", member.id, entity, member, tentative=some
            )
        )
    missing = [each for each in (members.missing, one.teams.doubt) if each]
    return code_host_parts.make_people_part(one.place, "members", items, missing, one.teams.rights)


IMPORTER: Final = ImporterKind(
    id="gitea",
    title="Gitea or Forgejo",
    options=GiteaImportOptions,
    makes=("component", "group", "user"),
    read=make_reader(GiteaApi, read_gitea),
    vendor="gitea",
    account_options=("host", "token", "api_url"),
    owners="organizations",
    by_people=True,
    file_page="src/branch/HEAD/{}",
    completed=partial(complete_options, name="organizations", flag="--org"),
)
