"""Answers of GitHub about an organization."""

import msgspec

from factbook.integrations.code_host import ConnectionPosition, GraphqlStruct
from factbook.outbound.outcomes import Missing, Outcome


class GithubBlob(GraphqlStruct):
    """File in the answer; the text is null for a binary one and may be cut off."""

    text: str | None = None
    is_truncated: bool = False
    byte_size: int = 0

    def content(self) -> bytes | Missing:
        """The whole file, or the reason that it is not there."""
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
        """The file that names owners: the first that there is."""
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
    """Page of the repositories that a team may use."""

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
    """Organization with one page, and what the credential may do there."""

    page: OrganizationPage | None = None
    viewer_is_a_member: bool = False
    viewer_can_administer: bool = False
