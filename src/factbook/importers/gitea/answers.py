"""Answers of Gitea about an organization: its repositories, teams and members."""

import base64
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from factbook.importers.catalog_info.documents import LARGEST
from factbook.importers.code_host.repository import Content
from factbook.integrations.code_host import Slug
from factbook.integrations.gitea.answers import GiteaRepository, Moment
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome

_Name = Annotated[str, Meta(pattern=r"\A[\w.-]{1,255}\Z")]


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
            return Missing(Outcome.NOT_APPLICABLE, f"it is no file, but a {self.type}")
        if self.size > LARGEST:
            return Missing(Outcome.TOO_LARGE, f"the file has {self.size:,} bytes")
        try:
            data = base64.b64decode(self.content or "", validate=True)
        except ValueError:
            return UNUSABLE
        return data if len(data) == self.size else UNUSABLE


class FoundRepositories(msgspec.Struct):
    """Page of a search; each is decoded by itself."""

    data: list[Any]


class GiteaOrganization(msgspec.Struct):
    """Organization."""

    id: int


class GiteaTeam(msgspec.Struct):
    """Team, with what it may do with its repositories."""

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
        """True for somebody who may not sign in; Gitea tells administrators alone."""
        return self.prohibit_login


class GiteaAccount(msgspec.Struct):
    """Account that a credential is of."""

    login: _Name


class GiteaPermissions(msgspec.Struct):
    """Rights of an account in an organization."""

    is_owner: bool = False
