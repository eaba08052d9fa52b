"""Answers of GitLab about a group: its projects, groups and members, and files of projects."""

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from factbook.clock import iso
from factbook.importers.catalog_info.documents import LARGEST
from factbook.importers.code_host.repository import Content
from factbook.integrations.code_host import GraphqlStruct
from factbook.integrations.gitlab.answers import GitlabRepository, Language
from factbook.outbound.outcomes import Missing, Outcome

# From here on a member of a group may do everything with its projects but delete them.
MAINTAINER: Final = 40
GUEST: Final = 10

_ACTIVE: Final = "active"
# Service accounts and those of access tokens, as GitLab names them.
_SERVICE: Final = re.compile(
    r"(?:group|project)_\d+_bot(?:_\w+)?|service_account_(?:\w+_)?[0-9a-f]{16,64}", re.ASCII
)
# The name that GitLab gives a group or project until it deletes it.
_DELETED: Final = re.compile(r"-deletion_scheduled-\d+(?:/|\Z)", re.ASCII)

# REST

GitlabPath = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.][A-Za-z0-9_./-]{0,999}\Z")]


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
        """True if the group or project with this path is gone for its people."""
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
        """True for somebody who may not sign in: blocked, banned, deactivated or not approved."""
        return self.state != _ACTIVE


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
            return Missing(Outcome.NOT_APPLICABLE, "the file is not text; save it in UTF-8")
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
