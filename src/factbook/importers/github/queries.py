"""Queries of GitHub about an organization and its files, and the answers.

In GraphQL documents logins, paths and cursors are variables. Listings are read to their end, or
marked incomplete; many files are requested at once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

import msgspec

from factbook.importers.catalog_files import FileLocation
from factbook.importers.code_hosts import HEAD, Content, HostedRepository
from factbook.integrations.code_host import ConnectionPosition, GraphqlStruct
from factbook.integrations.github import list_github_paths
from factbook.integrations.github.api import (
    GithubApi,
    GithubQueryError,
    GithubQueryResult,
    decode_github_answer,
)
from factbook.outbound.outcomes import REPEATED, UNUSABLE, Missing, Outcome

CODEOWNERS_FILES: Final = (".github/CODEOWNERS", "CODEOWNERS", "docs/CODEOWNERS")
PAGE: Final = "page"

_INFO: Final = "pageInfo { hasNextPage endCursor }"
_LIMIT: Final = "rateLimit { cost remaining resetAt nodeCount }"
_BLOB: Final = "{ ... on Blob { text isTruncated byteSize } }"
_REPOSITORY: Final = (
    "id databaseId nameWithOwner isArchived isFork isEmpty visibility description url"
)
_TEAM_MEMBERS: Final = f"nodes {{ login }} {_INFO}"
_TEAM_REPOSITORIES: Final = f"edges {{ permission node {{ databaseId }} }} {_INFO}"

TEAMS: Final = f"""query Teams($login: String!, $size: Int!, $after: String) {{
  organization(login: $login) {{
    {PAGE}: teams(first: $size, after: $after, orderBy: {{field: NAME, direction: ASC}}) {{
      totalCount {_INFO}
      nodes {{
        databaseId slug name description privacy url
        parentTeam {{ slug }}
        members(first: 100, membership: IMMEDIATE) {{ {_TEAM_MEMBERS} }}
        repositories(first: 100) {{ {_TEAM_REPOSITORIES} }}
      }}
    }}
  }}
  {_LIMIT}
}}
"""

MEMBERS: Final = f"""query Members($login: String!, $size: Int!, $after: String) {{
  organization(login: $login) {{
    {PAGE}: membersWithRole(first: $size, after: $after) {{
      totalCount {_INFO}
      nodes {{ databaseId login name url avatarUrl }}
    }}
  }}
  {_LIMIT}
}}
"""

TEAM_MEMBERS: Final = f"""query TeamMembers($login: String!, $team: String!, $after: String) {{
  organization(login: $login) {{
    team(slug: $team) {{
      {PAGE}: members(first: 100, after: $after, membership: IMMEDIATE) {{ {_TEAM_MEMBERS} }}
    }}
  }}
  {_LIMIT}
}}
"""

TEAM_REPOSITORIES: Final = f"""query TeamRepositories(
  $login: String!, $team: String!, $after: String
) {{
  organization(login: $login) {{
    team(slug: $team) {{
      {PAGE}: repositories(first: 100, after: $after) {{ {_TEAM_REPOSITORIES} }}
    }}
  }}
  {_LIMIT}
}}
"""

_SMALLEST_PAGE: Final = 5
# Pages of an organization with a hundred thousand repositories.
_MOST_PAGES: Final = 4_000

_RAW: Final = r"([^/]+/[^/]+)/(.+)"
_API: Final = r"https?://(?:api\.{host}|{host}/api/v3)"
_ADDRESSES: Final = (
    rf"{_API}/repos/(?P<slug>[^/]+/[^/]+)/contents/(?P<path>.+)",
    rf"{_API}/repositories/(?P<slug>\d+)/contents/(?P<path>.+)",
    r"https?://{host}/([^/]+/[^/]+)/(?:blob|tree|raw|edit|blame)/(.+)",
    rf"https?://(?:raw\.{{host}}|{{host}}/raw)/{_RAW}",
)
_PUBLIC: Final = "github.com"
_AT_ONCE: Final = 25
_NOT_FOUND: Final = Missing(Outcome.NOT_FOUND)


class GithubBlob(GraphqlStruct):
    """File in the answer; the text is null for a binary one and may be cut off."""

    text: str | None = None
    is_truncated: bool = False
    byte_size: int = 0

    def content(self) -> bytes | Missing:
        """The whole file, or the reason for a missing one."""
        if self.text is None:
            return Missing(Outcome.NOT_APPLICABLE, "the file is not text; save it in UTF-8")
        if self.is_truncated:
            return Missing(Outcome.TOO_LARGE, f"the file has {self.byte_size:,} bytes")
        return self.text.encode()


class _Name(GraphqlStruct):
    name: str


class _Topic(GraphqlStruct):
    topic: _Name


class _Topics(GraphqlStruct):
    nodes: list[_Topic | None]


class _Commit(GraphqlStruct):
    oid: str


class _Branch(GraphqlStruct):
    name: str
    target: _Commit | None


class ListedRepository(GraphqlStruct):
    """Repository of the listing, with its catalog files and those that name its owners."""

    id: str
    database_id: int
    name_with_owner: str
    is_archived: bool
    is_fork: bool
    is_empty: bool
    visibility: str
    url: str
    description: str | None = None
    primary_language: _Name | None = None
    repository_topics: _Topics | None = None
    default_branch_ref: _Branch | None = None
    e0: GithubBlob | None = None
    e1: GithubBlob | None = None
    e2: GithubBlob | None = None
    e3: GithubBlob | None = None
    c0: GithubBlob | None = None
    c1: GithubBlob | None = None
    c2: GithubBlob | None = None

    @property
    def name(self) -> str:
        """The name without the owner."""
        return self.name_with_owner.partition("/")[2]

    @property
    def head(self) -> str | None:
        """The commit at the tip of the default branch."""
        branch = self.default_branch_ref
        return branch.target.oid if branch and branch.target else None

    @property
    def catalog_files(self) -> tuple[GithubBlob | None, ...]:
        """The catalog files, by the order of their paths in the query."""
        return (self.e0, self.e1, self.e2, self.e3)

    @property
    def codeowners(self) -> GithubBlob | None:
        """The first existing CODEOWNERS file."""
        return next((one for one in (self.c0, self.c1, self.c2) if one), None)

    @property
    def topics(self) -> list[str]:
        """The names of the topics."""
        nodes = self.repository_topics.nodes if self.repository_topics else []
        return [node.topic.name for node in nodes if node]


class _Login(GraphqlStruct):
    login: str


class _Parent(GraphqlStruct):
    slug: str


class LoginPage(GraphqlStruct):
    """Page of a team's members."""

    nodes: list[_Login | None]
    page_info: ConnectionPosition


class _RepositoryId(GraphqlStruct):
    database_id: int | None


class _Access(GraphqlStruct):
    permission: str
    node: _RepositoryId


class AccessPage(GraphqlStruct):
    """Page of the repositories that a team can access."""

    edges: list[_Access | None]
    page_info: ConnectionPosition


class ListedTeam(GraphqlStruct):
    """Team with the first page of its members and repositories."""

    database_id: int
    slug: str
    name: str
    privacy: str
    url: str
    members: LoginPage
    repositories: AccessPage
    description: str | None = None
    parent_team: _Parent | None = None


class ListedMember(GraphqlStruct):
    """Member of the organization."""

    database_id: int
    login: str
    url: str
    avatar_url: str
    name: str | None = None


class OrganizationPage(GraphqlStruct):
    """Page of a connection of the organization; a node is decoded where its type is known."""

    total_count: int
    nodes: list[msgspec.Raw]
    page_info: ConnectionPosition


class _TeamPage(GraphqlStruct):
    page: msgspec.Raw


class TeamAnswer(GraphqlStruct):
    """Organization with a page of something of one team."""

    team: _TeamPage | None


class ListingAnswer(GraphqlStruct):
    """Organization with one page, and the credential's permissions there."""

    page: OrganizationPage | None = None
    viewer_is_a_member: bool = False
    viewer_can_administer: bool = False


@lru_cache(maxsize=8)
def make_repositories_query(files: int) -> str:
    """Query for a page of repositories, with `files` catalog files and the CODEOWNERS of each.

    Variables: login, size, after; e0, e1 … for the catalog files; c0, c1 and c2 for the others.
    """
    given, fields = _make_file_fields(files)
    return f"""query Repositories($login: String!, $size: Int!, $after: String, {given}) {{
  organization(login: $login) {{
    viewerIsAMember viewerCanAdminister
    {PAGE}: repositories(
      first: $size, after: $after, orderBy: {{field: CREATED_AT, direction: ASC}}
    ) {{
      totalCount {_INFO}
      nodes {{
{fields}
      }}
    }}
  }}
  {_LIMIT}
}}
"""


@lru_cache(maxsize=8)
def make_some_repositories_query(files: int) -> str:
    """Query for single repositories. Variables: ids, and those for the files."""
    given, fields = _make_file_fields(files)
    return f"""query Nodes($ids: [ID!]!, {given}) {{
  nodes(ids: $ids) {{
    ... on Repository {{
{fields}
    }}
  }}
  {_LIMIT}
}}
"""


def _make_file_fields(files: int) -> tuple[str, str]:
    """The variables for the files of a repository, and its fields."""
    names = [*(f"e{i}" for i in range(files)), *(f"c{i}" for i in range(len(CODEOWNERS_FILES)))]
    given = " ".join(f"${name}: String!" for name in names)
    blobs = "\n".join(f"        {name}: object(expression: ${name}) {_BLOB}" for name in names)
    return (
        given,
        f"""        {_REPOSITORY}
        primaryLanguage {{ name }}
        repositoryTopics(first: 20) {{ nodes {{ topic {{ name }} }} }}
        defaultBranchRef {{ name target {{ oid }} }}
{blobs}""",
    )


@lru_cache(maxsize=64)
def make_files_query(count: int) -> str:
    """Query for files b0, b1 …; variables: o0, n0 and the expression e0, …"""
    given = " ".join(f"$o{i}: String! $n{i}: String! $e{i}: String!" for i in range(count))
    blobs = "\n".join(
        f"  b{i}: repository(owner: $o{i}, name: $n{i}) "
        f"{{ file: object(expression: $e{i}) {_BLOB} }}"
        for i in range(count)
    )
    return f"query Files({given}) {{\n{blobs}\n  {_LIMIT}\n}}\n"


class _Numbered(Protocol):
    database_id: int


Node = TypeVar("Node", bound=_Numbered)


class ListingQuery(NamedTuple):
    """Query of a listing: its document, its variables, and the size of its pages."""

    document: str
    variables: Mapping[str, Any]
    size: int


@dataclass
class Listing(Generic[Node]):
    """The nodes by id in the order of the list, and the reason if it is not complete.

    `errors` are those of single fields, by node and path below it.
    """

    nodes: dict[int, Node] = field(default_factory=dict)
    missing: Missing | None = None
    errors: dict[int, list[GithubQueryError]] = field(default_factory=dict)
    rights: set[str] = field(default_factory=set)
    total: int = 0  # the largest in any page: later pages may be wrong


async def list_github_nodes(
    api: GithubApi,
    login: str,
    query: ListingQuery,
    type_: type[Node],
    show: Callable[[int, int], None] = lambda done, total: None,
) -> Listing[Node]:
    """Every node of a connection of an organization, asked for by `query`.

    `show` gets the progress. Pages that are too expensive are made smaller. A failed page, a hidden
    node, or fewer nodes than the total make the listing incomplete.
    """
    found = Listing[Node]()
    size, after = query.size, None
    for _ in range(_MOST_PAGES):
        variables = {**query.variables, "login": login, "size": size, "after": after}
        told = await api.ask(query.document, variables)
        is_too_large = told.failure is not None and (
            told.too_heavy or told.failure.outcome is Outcome.TOO_LARGE
        )
        if is_too_large and size > _SMALLEST_PAGE:
            size = max(_SMALLEST_PAGE, size // 2)
            continue
        page = _read_node_page(told, found)
        if page is None:
            return found
        before, found.total = len(found.nodes), max(found.total, page.total_count)
        _add_nodes(found, page, told.errors, type_)
        show(len(found.nodes), page.total_count)
        after = page.page_info.end_cursor
        if not page.page_info.has_next_page:
            if len(found.nodes) < found.total and found.missing is None:
                text = f"{len(found.nodes):,} of {found.total:,} were listed"
                found.missing = Missing(Outcome.INCOMPLETE, text)
            return found
        if after is None or len(found.nodes) == before:
            break
    found.missing = found.missing or REPEATED
    return found


def _read_node_page(told: GithubQueryResult, found: Listing[Any]) -> OrganizationPage | None:
    """The page of an answer; None, with the reason in the listing, if there is none."""
    answer: ListingAnswer | None = decode_github_answer(
        told.data.get("organization", b""), ListingAnswer
    )
    if answer is None or answer.page is None:
        errors = [error.missing for error in told.errors]
        found.missing = told.failure or (errors[0] if errors else UNUSABLE)
        return None
    if answer.viewer_is_a_member:
        found.rights.add("membership")
    if answer.viewer_can_administer:
        found.rights.add("administration")
    return answer.page


def _add_nodes(
    found: Listing[Node],
    page: OrganizationPage,
    errors: Sequence[GithubQueryError],
    type_: type[Node],
) -> None:
    """Add the nodes of a page, with the errors of each."""
    by_place: dict[int, list[GithubQueryError]] = {}
    for error in errors:
        match error.path:
            case ("organization", "page", "nodes", int(place), *_):
                by_place.setdefault(place, []).append(error)
            case _:
                found.missing = found.missing or error.missing
    for place, raw in enumerate(page.nodes):
        node = decode_github_answer(raw, type_)
        if node is None:
            of_node = by_place.get(place)
            found.missing = found.missing or (of_node[0].missing if of_node else UNUSABLE)
            continue
        found.nodes[node.database_id] = node
        if place in by_place:
            found.errors[node.database_id] = by_place[place]


def make_file_addresses(host: str) -> tuple[str, ...]:
    """The forms of addresses of files at a host."""
    raw = (rf"https?://raw\.githubusercontent\.com/{_RAW}",) if host == _PUBLIC else ()
    return (*_ADDRESSES, *raw)


class _Holder(GraphqlStruct):
    file: GithubBlob | None = None


class GithubFileCalls:
    """Calls for files of listed repositories, and of others."""

    def __init__(self, api: GithubApi, listed: Iterable[ListedRepository]) -> None:
        self._api = api
        self._listed = {one.name_with_owner.lower(): one for one in listed}

    async def contents(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, Content]:
        """The content of each of the files."""
        found: dict[FileLocation, Content] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            found |= await self._ask(wanted[start : start + _AT_ONCE])
        return found

    async def paths(self, repository: HostedRepository) -> Sequence[str] | Missing:
        """The paths of all files of a repository at the commit that was listed."""
        listed, head = self._listed[repository.slug.lower()], repository.version or ""
        return await list_github_paths(self._api, listed.id, listed.name_with_owner, head)

    async def _ask(self, wanted: Sequence[FileLocation]) -> dict[FileLocation, Content]:
        """The content of a few files, requested in halves if too expensive together."""
        variables: dict[str, Any] = {}
        for i, one in enumerate(wanted):
            owner, _, name = one.repository.partition("/")
            listed = self._listed.get(one.repository.lower())
            # HEAD means the listed commit, even if the branch has moved.
            ref = listed.head if listed and one.ref == HEAD else None
            variables |= {f"o{i}": owner, f"n{i}": name, f"e{i}": f"{ref or one.ref}:{one.path}"}
        told = await self._api.ask(make_files_query(len(wanted)), variables)
        if told.failure:
            too_large = told.failure.outcome is Outcome.TOO_LARGE
            if len(wanted) > 1 and (told.too_heavy or too_large):
                half = len(wanted) // 2
                return {**await self._ask(wanted[:half]), **await self._ask(wanted[half:])}
            return dict.fromkeys(wanted, told.failure)
        errors = {error.path[0]: error.missing for error in told.errors if error.path}
        found: dict[FileLocation, Content] = {}
        for i, one in enumerate(wanted):
            if (error := errors.get(f"b{i}")) is not None:
                found[one] = error
                continue
            holder = decode_github_answer(told.data.get(f"b{i}", b""), _Holder)
            if holder is None:
                found[one] = UNUSABLE
            else:
                found[one] = holder.file.content() if holder.file else _NOT_FOUND
        return found
