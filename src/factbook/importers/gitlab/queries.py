"""Queries of GitLab about a group and the files of its projects, and the answers.

In GraphQL documents paths, ids and branches are variables. Listings are read to their end, or
marked incomplete; many files are requested at once.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from factbook.clock import iso
from factbook.importers.catalog_files import LARGEST_FILE, FileLocation
from factbook.importers.code_hosts import (
    HEAD,
    Content,
    HostedRepository,
    RootContent,
    Row,
    RowListing,
)
from factbook.integrations.code_host import GraphqlStruct
from factbook.integrations.gitlab import list_gitlab_paths
from factbook.integrations.gitlab.api import (
    NO_BRANCH,
    NO_REPOSITORY,
    PER_PAGE,
    GitlabApi,
    GitlabQueryResult,
    GitlabRepository,
    Language,
    find_next_page,
    pick_part,
)
from factbook.outbound.outcomes import REPEATED, UNUSABLE, Missing, Outcome, read_as

# From this level on, group members may do anything with projects except delete them.
MAINTAINER: Final = 40
GUEST: Final = 10

_ACTIVE: Final = "active"
# Service accounts and those of access tokens, as GitLab names them.
_SERVICE: Final = re.compile(
    r"(?:group|project)_\d+_bot(?:_\w+)?|service_account_(?:\w+_)?[0-9a-f]{16,64}", re.ASCII
)
# GitLab's name for a group or project that is marked for deletion.
_DELETED: Final = re.compile(r"-deletion_scheduled-\d+(?:/|\Z)", re.ASCII)

# REST

GitlabPath = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.][A-Za-z0-9_./-]{0,999}\Z")]

_BLOBS: Final = "{ nodes { path rawTextBlob size } }"

ROOTS_QUERY: Final = f"""query Roots($group: ID!, $ids: [ID!], $paths: [String!]!) {{
  group(fullPath: $group) {{
    projects(includeSubgroups: true, ids: $ids, first: 100) {{
      nodes {{
        id
        languages {{ name share }}
        repository {{
          empty rootRef tree {{ lastCommit {{ sha }} }}
          blobs(paths: $paths, first: 20) {_BLOBS}
        }}
      }}
    }}
  }}
}}
"""

# Newest first: a row appended at the end would hide, in the total, a row that a removal moved to
# a page that was already read.
NEWEST_FIRST: Final = {"order_by": "id", "sort": "desc"}

# GitLab reports no total for longer lists.
_MOST_COUNTED: Final = 10_000
_MOST_PAGES: Final = 1_000

# Older GitLab addresses have no dash.
ADDRESSES: Final = (
    r"https?://{host}/api/v4/projects/(?P<slug>[^/]+)/repository/files/(?P<path>.+?)"
    r"(?:/(?:raw|blame))?",
    r"https?://{host}/([^/]+(?:/[^/]+)+?)/-/(?:blob|tree|raw|edit|blame)/(.+)",
    r"https?://{host}/([^/]+(?:/[^/]+)+?)/(?:blob|tree|raw|edit|blame)/(.+)",
)
# Twenty projects with a file each reach two thirds of the limit on complexity.
_FILES_AT_ONCE: Final = 20
_NOT_FOUND: Final = Missing(Outcome.NOT_FOUND)
_NO_PROJECT: Final = Missing(Outcome.DENIED, "there is no such project, or it is hidden")

CODEOWNERS_FILES: Final = ("CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
_ROOTS_AT_ONCE: Final = 50
_SMALLEST_BATCH: Final = 10
_DISABLED: Final = "disabled"

# GitLab has it since version 15.
_OPTIONAL: Final = frozenset({("group", "projects", "nodes", "languages")})


class _Namespace(msgspec.Struct):
    id: int
    full_path: str


class SharedGroup(msgspec.Struct):
    """Group with which a project or group is shared."""

    group_id: int
    group_access_level: int
    group_full_path: str = ""
    expires_at: str | None = None

    def gives(self, level: int, now: int) -> bool:
        """True if members of the group have this level of access, unless the share expired."""
        has_ended = self.expires_at is not None and self.expires_at <= iso(now)
        return self.group_access_level >= level and not has_ended


class _Deletable(msgspec.Struct, kw_only=True):
    """Group or project, which GitLab keeps for some days after it was deleted."""

    marked_for_deletion_on: str | None = None
    marked_for_deletion_at: str | None = None

    def is_deleted(self, path: str) -> bool:
        """True if the group or project with this path was deleted by its people."""
        marked = self.marked_for_deletion_on or self.marked_for_deletion_at
        return bool(marked or _DELETED.search(path))


class ListedProject(_Deletable):
    """Project of a listing."""

    id: int
    path_with_namespace: GitlabPath
    namespace: _Namespace
    web_url: str
    visibility: str
    archived: bool = False
    description: str | None = None
    default_branch: str | None = None
    topics: list[str] = []
    shared_with_groups: list[SharedGroup] = []
    forked_from_project: Any = None
    repository_access_level: str = "enabled"


class ListedGroup(_Deletable):
    """Group or subgroup; a listing may not say with which groups it is shared."""

    id: int
    full_path: GitlabPath
    name: str
    web_url: str
    visibility: str
    description: str | None = None
    parent_id: int | None = None
    shared_with_groups: list[SharedGroup] | None = None

    @property
    def former_path(self) -> str:
        """The path that it had before it was marked for deletion."""
        return _DELETED.sub(lambda match: "/" if match[0].endswith("/") else "", self.full_path)


class GroupMember(msgspec.Struct):
    """Member of a group."""

    id: int
    username: str
    name: str
    web_url: str
    access_level: int
    state: str = "active"
    avatar_url: str | None = None

    @property
    def is_service(self) -> bool:
        """True for a service account, and for that of an access token."""
        return _SERVICE.fullmatch(self.username) is not None

    @property
    def is_disabled(self) -> bool:
        """True for a person who may not sign in: blocked, banned, deactivated or not approved."""
        return self.state != _ACTIVE


class CurrentUser(msgspec.Struct):
    """Account of the credential."""

    id: int


class Membership(msgspec.Struct):
    """Membership of a group, with inherited ones."""

    access_level: int


# GraphQL


class GitlabBlob(GraphqlStruct):
    """File of a repository; the text is null for a binary one."""

    path: str
    raw_text_blob: str | None = None
    size: int | str | None = None

    def content(self) -> Content:
        """The whole file, or the reason for a missing one."""
        text = str(self.size)
        size = int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0
        if size > LARGEST_FILE:
            return Missing(Outcome.TOO_LARGE, f"the file has {size:,} bytes")
        if self.raw_text_blob is None:
            return Missing(Outcome.NOT_APPLICABLE, "the file is not text; save it in UTF-8")
        return self.raw_text_blob.encode()


class BlobPage(GraphqlStruct):
    """Files of a repository, without missing ones."""

    nodes: list[GitlabBlob | None]


class _Repository(GraphqlStruct):
    blobs: BlobPage


class ProjectWithFiles(GraphqlStruct):
    """Project with some of its files; the repository is null if it may not be read."""

    repository: _Repository | None = None


class RootRepository(GitlabRepository):
    """Repository with its root files."""

    blobs: BlobPage


class ProjectRoot(GraphqlStruct):
    """Project with its languages and root files."""

    id: Annotated[str, Meta(pattern=r"^gid://gitlab/Project/[0-9]+\Z")]
    languages: list[Language] | None = None
    repository: RootRepository | None = None

    @property
    def number(self) -> int:
        """The id in REST."""
        return int(self.id.rpartition("/")[2])

    @property
    def language(self) -> str:
        """The language with the largest share."""
        known = self.languages or []
        return max(known, key=lambda one: one.share or 0).name if known else ""


@lru_cache(maxsize=64)
def make_gitlab_files_query(count: int) -> str:
    """Query for files of projects b0, b1 …; variables: p0, the paths f0 and the branch r0, …"""
    given = " ".join(f"$p{i}: ID! $f{i}: [String!]! $r{i}: String" for i in range(count))
    blobs = "\n".join(
        f"  b{i}: project(fullPath: $p{i}) "
        f"{{ repository {{ blobs(paths: $f{i}, ref: $r{i}, first: 20) {_BLOBS} }} }}"
        for i in range(count)
    )
    return f"query Files({given}) {{\n{blobs}\n}}\n"


async def list_gitlab_rows(
    api: GitlabApi, target: str, type_: type[Row], **query: str | int
) -> RowListing[Row]:
    """Every row of a list.

    A failed page, an invalid row, or fewer rows than GitLab's count make the listing incomplete.
    """
    found = RowListing[Row]()
    more: dict[str, str] = {}
    for _ in range(_MOST_PAGES):
        answer = await api.get(target, per_page=PER_PAGE, **query, **more)
        found.count(answer, "x-total")
        is_new = found.take(answer.read_as(list[Any]), type_)
        if not answer.ok:
            return found
        more = find_next_page(answer)
        if not more:
            found.end(_MOST_COUNTED)
            return found
        if not is_new:
            break
    found.missing = found.missing or REPEATED
    return found


class GitlabFileCalls:
    """Calls for files of listed projects, and of others."""

    def __init__(self, api: GitlabApi, listed: Iterable[HostedRepository]) -> None:
        self._api = api
        self._versions = {one.slug: one.version for one in listed}

    async def contents(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, Content]:
        """The content of each of the files."""
        found: dict[FileLocation, Content] = {}
        for start in range(0, len(wanted), _FILES_AT_ONCE):
            found |= await self._ask(wanted[start : start + _FILES_AT_ONCE])
        return found

    async def paths(self, repository: HostedRepository) -> Sequence[str] | Missing:
        """The paths of all files of a project at the commit that was listed."""
        number, head = str(repository.number), repository.version or ""
        return await list_gitlab_paths(self._api, number, repository.slug, head)

    async def _ask(self, wanted: Sequence[FileLocation]) -> dict[FileLocation, Content]:
        """The content of a few files, grouped by project and branch.

        Requests that are too large are split in halves.
        """
        trees: dict[tuple[str, str | None], list[FileLocation]] = {}
        for one in wanted:
            # HEAD means the listed commit, even if the branch has moved.
            ref = self._versions.get(one.repository) if one.ref == HEAD else one.ref
            trees.setdefault((one.repository, ref), []).append(one)
        variables: dict[str, Any] = {}
        for i, ((slug, ref), files) in enumerate(trees.items()):
            paths = [one.path for one in files]
            variables |= {f"p{i}": slug, f"r{i}": ref, f"f{i}": paths}
        told = await self._api.ask(make_gitlab_files_query(len(trees)), optional=(), **variables)
        if told.failure and told.failure.outcome is Outcome.TOO_LARGE and len(wanted) > 1:
            half = len(wanted) // 2
            return {**await self._ask(wanted[:half]), **await self._ask(wanted[half:])}
        found: dict[FileLocation, Content] = {}
        for i, files in enumerate(trees.values()):
            content = _read_contents(told, f"b{i}")
            if isinstance(content, Missing):
                found |= dict.fromkeys(files, content)
            else:
                found |= {one: content.get(one.path, _NOT_FOUND) for one in files}
        return found


def index_by_path(found: BlobPage) -> dict[str, Content] | Missing:
    """The files of an answer by their paths, unless one is hidden."""
    if None in found.nodes:
        return UNUSABLE
    return {blob.path: blob.content() for blob in found.nodes if blob}


def _read_contents(told: GitlabQueryResult, name: str) -> dict[str, Content] | Missing:
    """The existing files of a project, or the reason if none were read."""
    failed = told.failure or told.below((name,))
    if failed is not None:
        return failed
    if told.data.get(name) is None:
        return _NO_PROJECT
    project = read_as(told.data[name], ProjectWithFiles)
    if isinstance(project, Missing):
        return project
    return NO_REPOSITORY if project.repository is None else index_by_path(project.repository.blobs)


@dataclass
class GitlabRoot:
    """Root files of a project, its last commit if any, and its main language."""

    content: RootContent = field(default_factory=RootContent)
    version: str | None = None
    language: str = ""

    @property
    def is_read(self) -> bool:
        """True if no existing file may be missing."""
        return not self.content.missing


async def read_gitlab_roots(
    api: GitlabApi, group: str, projects: Sequence[ListedProject], files: Sequence[str]
) -> dict[int, GitlabRoot]:
    """The root files of projects of a group, by number.

    Requests that fail are made smaller; after one with few projects fails, no more are made.
    """
    found = {one.id: GitlabRoot() for one in projects if _is_repository_off(one)}
    asked = [one for one in projects if not _is_repository_off(one)]
    reader, size, start = _RootReader(api, group, files), _ROOTS_AT_ONCE, 0
    while start < len(asked):
        some = asked[start : start + size]
        read = await reader.read(some)
        if not isinstance(read, Missing):
            found |= read
            start += size
        elif size > _SMALLEST_BATCH and read.outcome in {Outcome.TRANSIENT, Outcome.TOO_LARGE}:
            size = max(_SMALLEST_BATCH, size // 2)
        else:
            content = {one.id: GitlabRoot(RootContent(missing=[read])) for one in asked[start:]}
            return found | content
    return found


class _RootReader:
    def __init__(self, api: GitlabApi, group: str, files: Sequence[str]) -> None:
        self._api = api
        self._group = group
        self._files = files

    async def read(self, projects: Sequence[ListedProject]) -> dict[int, GitlabRoot] | Missing:
        """The root files of a few projects, or the reason if none were read."""
        ids = [f"gid://gitlab/Project/{one.id}" for one in projects]
        paths = [*self._files, *CODEOWNERS_FILES]
        told = await self._api.ask(
            ROOTS_QUERY, optional=_OPTIONAL, group=self._group, ids=ids, paths=paths
        )
        nodes = pick_part(told.data, "group", "projects", "nodes")
        if told.failure or not isinstance(nodes, list):
            return told.failure or told.below(()) or UNUSABLE
        read = dict(self._of_nodes(told, nodes))
        lost = GitlabRoot(RootContent(missing=[NO_REPOSITORY]))
        return {one.id: read.get(one.id, lost) for one in projects}

    def _of_nodes(
        self, told: GitlabQueryResult, nodes: Sequence[Any]
    ) -> Iterator[tuple[int, GitlabRoot]]:
        for place, node in enumerate(nodes):
            one = read_as(node, ProjectRoot)
            if isinstance(one, ProjectRoot):
                error = told.below(("group", "projects", "nodes", place, "repository"))
                yield one.number, self._root(one, error)

    def _root(self, one: ProjectRoot, error: Missing | None) -> GitlabRoot:
        if error is not None or one.repository is None:
            return GitlabRoot(RootContent(missing=[error or NO_REPOSITORY]))
        files = index_by_path(one.repository.blobs)
        if one.repository.head is None and not one.repository.empty:
            files = NO_BRANCH
        if isinstance(files, Missing):
            return GitlabRoot(RootContent(missing=[files]))
        catalog = next(((path, files[path]) for path in self._files if path in files), None)
        owners = next((files[path] for path in CODEOWNERS_FILES if path in files), None)
        text = owners.decode() if isinstance(owners, bytes) else None
        return GitlabRoot(RootContent(catalog, text), one.repository.head, one.language)


def _is_repository_off(project: ListedProject) -> bool:
    """True for a project whose repository is disabled for everyone."""
    return project.repository_access_level == _DISABLED
