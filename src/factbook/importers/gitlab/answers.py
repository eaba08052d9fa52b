"""Answers of GitLab about a group: its projects, groups and members, and files of projects."""

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from factbook.importers.catalog_info.documents import LARGEST
from factbook.importers.code_host.repository import Content
from factbook.integrations.code_host import GraphqlStruct
from factbook.integrations.gitlab.answers import GitlabRepository, Language
from factbook.outbound.outcomes import Missing, Outcome

# From here on a member of a group may do everything with its projects but delete them.
MAINTAINER: Final = 40
GUEST: Final = 10

_GONE: Final = frozenset({"banned", "blocked", "blocked_pending_approval", "ldap_blocked"})
# The accounts of access tokens, as GitLab names them.
_BOT: Final = re.compile(r"(?:group|project)_\d+_bot(?:_\w+)?", re.ASCII)

# REST

GitlabPath = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.][A-Za-z0-9_./-]{0,999}\Z")]


class _Namespace(msgspec.Struct):
    id: int
    full_path: str


class _SharedGroup(msgspec.Struct):
    group_id: int
    group_access_level: int


class ListedProject(msgspec.Struct):
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
    shared_with_groups: list[_SharedGroup] = []
    forked_from_project: Any = None
    repository_access_level: str = "enabled"


class ListedGroup(msgspec.Struct):
    """Group or subgroup."""

    id: int
    full_path: GitlabPath
    name: str
    web_url: str
    visibility: str
    description: str | None = None
    parent_id: int | None = None


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
    def is_bot(self) -> bool:
        """True for the account of an access token."""
        return _BOT.fullmatch(self.username) is not None

    @property
    def is_person(self) -> bool:
        """True for somebody who may sign in."""
        return not (self.is_bot or self.state in _GONE)


class CurrentUser(msgspec.Struct):
    """Account that a credential is of."""

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
        """The whole file, or the reason that it is not there."""
        text = str(self.size)
        size = int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0
        if size > LARGEST:
            return Missing(Outcome.TOO_LARGE, f"the file has {size:,} bytes")
        if self.raw_text_blob is None:
            return Missing(Outcome.NOT_APPLICABLE, "the file is not text")
        return self.raw_text_blob.encode()


class BlobPage(GraphqlStruct):
    """Files of a repository; one that is not there is not among them."""

    nodes: list[GitlabBlob | None]


class _Repository(GraphqlStruct):
    blobs: BlobPage


class ProjectWithFiles(GraphqlStruct):
    """Project with some of its files; the repository is null if it may not be read."""

    repository: _Repository | None = None


class RootRepository(GitlabRepository):
    """Repository with the files that an import begins with."""

    blobs: BlobPage


class ProjectRoot(GraphqlStruct):
    """Project with its languages and the files that an import begins with."""

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
