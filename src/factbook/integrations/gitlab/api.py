"""Settings of a GitLab instance, and GraphQL and REST requests to it.

Answers in an unexpected form are rejected on decoding.
"""

import asyncio
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Generic, NamedTuple, TypeVar
from urllib.parse import parse_qs, urlsplit

import msgspec
from msgspec import Meta

from factbook.integrations import code_host
from factbook.integrations.code_host import (
    CodeHostApi,
    CodeHostOptions,
    FieldPath,
    GraphqlStruct,
    NodePage,
    list_unknown_fields,
    remove_fields,
)
from factbook.integrations.integration import (
    SourceLocation,
    find_location,
    get_annotations,
    report_no_annotation,
)
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import (
    REPEATED,
    UNUSABLE,
    Answer,
    Missing,
    Outcome,
    judge_graphql_error,
    report_too_many,
)
from factbook.settings.option_tables import about

GITLAB: Final = "gitlab.com"
SLUG: Final = "gitlab.com/project-slug"
INSTANCE: Final = "gitlab.com/instance"

_API_VERSION: Final = "/v4"
_PART: Final = r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,254}"
# Segments that follow a project's path; no project can have such a name.
_BELOW: Final = frozenset({"-", "blob", "edit", "raw", "tree"})


class GitlabOptions(CodeHostOptions, frozen=True, kw_only=True):
    """Instance of GitLab with one token."""

    API: ClassVar[str] = f"/api{_API_VERSION}"
    EXAMPLE: ClassVar[str] = "gitlab.example.com"
    FORM: ClassVar[str] = "group/project"
    OWNER: ClassVar[str] = "a group"
    # Names that GitLab allows; no other text of an annotation gets into a request.
    PATTERN: ClassVar[re.Pattern[str]] = re.compile(rf"{_PART}(?:/{_PART}){{1,20}}", re.ASCII)
    KEEPS_CASE: ClassVar[bool] = True

    host: Annotated[str, about("Host that people and annotations name.")] = GITLAB
    api_url: Annotated[
        str,
        about(
            "Address of the REST interface, which ends with `/v4`; that of GraphQL follows from "
            "it. Empty: `https://<host>/api/v4`."
        ),
    ] = ""
    token: Annotated[
        str, about("Secret. A personal, group or project access token with `read_api`.")
    ] = ""
    groups: Annotated[
        list[str], about("Top-level groups to ask for. Empty: every one that annotations name.")
    ] = msgspec.field(default_factory=list)
    exclude_bots: Annotated[bool, about("Leave merge requests of bots out of merge times.")] = False

    @property
    def graphql(self) -> str:
        """The URL of the GraphQL API, beside that of REST."""
        return f"{self.rest.removesuffix(_API_VERSION)}/graphql"

    @property
    def owners(self) -> Sequence[str]:
        """The groups."""
        return self.groups

    def problems(self) -> Iterator[str]:
        """The mistakes in the table."""
        yield from super().problems()
        if not self.rest.endswith(_API_VERSION):
            yield "api_url has to end with /v4"
        if not self.token:
            yield "a token is needed"

    def path_of(self, place: SourceLocation) -> str:
        """The project's path, without the segments of a branch and a folder."""
        parts = place.path.split("/")
        end = next((i for i, part in enumerate(parts) if i >= 2 and part in _BELOW), len(parts))
        return "/".join(parts[:end]).removesuffix(".git")


def find_gitlab_target(options: GitlabOptions, entity: Mapping[str, Any]) -> str | Missing:
    """`group/project`, with subgroups between, or the reason that there is none at this host.

    A slug belongs to the host in `gitlab.com/instance`, else to the host of the entity's location,
    else to the host in its key. Without a slug, the location has to be on this host.
    """
    annotations = get_annotations(entity)
    place = find_location(entity)
    host = place.host if place else None
    if INSTANCE in annotations:
        instance = annotations[INSTANCE]
        host = instance.strip().lower() if isinstance(instance, str) else ""
    host_slug = annotations.get(options.slug)
    if isinstance(host_slug, str) and (options.host != GITLAB or host in {None, GITLAB}):
        return options.named(host_slug)
    slug = annotations.get(SLUG)
    if host == options.host and isinstance(slug, str):
        return options.named(slug)
    if place is None or {place.host, host} != {options.host}:
        return report_no_annotation(f"no project on {options.host}")
    return options.located(place)


T = TypeVar("T")

HIDDEN: Final = Missing(Outcome.DENIED, "hidden from the credential")
NO_REPOSITORY: Final = Missing(Outcome.DENIED, "the credential may not read the repository")
NO_BRANCH: Final = Missing(Outcome.NOT_FOUND, "there is no default branch")
NO_PREMIUM: Final = Missing(Outcome.FEATURE_OFF, "not part of the plan, or of this edition")

Number = Annotated[int, Meta(ge=0, le=2_147_483_647)]
Moment = Annotated[datetime, Meta(tz=True)]


class GitlabCount(GraphqlStruct):
    """The size of a connection."""

    count: Number


class GitlabNodePage(NodePage[T], Generic[T]):
    """Page of a connection, with the total count if requested."""

    count: Number | None = None


class Author(GraphqlStruct):
    """Account that opened a merge request."""

    username: str
    bot: bool = False


class MergeRequest(GraphqlStruct):
    """Merged merge request; very old ones lack a merge time."""

    iid: str
    title: str
    created_at: Moment
    merged_at: Moment | None
    author: Author | None


class GitlabUser(GraphqlStruct):
    """An account."""

    username: str


class Member(GraphqlStruct):
    """Membership; `user` is None while an invitation is pending."""

    user: GitlabUser | None


class Language(GraphqlStruct):
    """A language and its share."""

    name: str
    share: float | None = None


class GitlabCommit(GraphqlStruct):
    """A commit."""

    sha: Annotated[str, Meta(pattern=r"^[0-9a-f]{40,64}\Z")]


class GitlabTree(GraphqlStruct):
    """The root folder of the default branch."""

    last_commit: GitlabCommit | None


class GitlabRepository(GraphqlStruct):
    """The repository of a project."""

    empty: bool
    root_ref: str | None
    tree: GitlabTree | None

    @property
    def head(self) -> str | None:
        """The commit at the head of the default branch."""
        commit = self.tree.last_commit if self.tree else None
        return commit.sha if commit else None


class GitlabProject(GraphqlStruct):
    """Project, with the fields of the first query."""

    id: Annotated[str, Meta(pattern=r"^gid://gitlab/Project/[0-9]+\Z")]
    full_path: str
    merge_requests_enabled: bool | None
    issues_enabled: bool | None
    languages: list[Language] | None
    repository: GitlabRepository | None
    requests: GitlabCount | None
    open_requests: GitlabCount | None
    last_month: GitlabCount | None
    merged: GitlabNodePage[MergeRequest] | None
    issues: GitlabCount | None
    open_issues: GitlabCount | None
    closed_issues: GitlabCount | None
    closed_last_month: GitlabCount | None
    members: GitlabNodePage[Member] | None

    @property
    def number(self) -> str:
        """The id in REST, which never changes."""
        return self.id.rpartition("/")[2]


@dataclass
class ProjectData:
    """Project, and the reasons for missing data by field, as GraphQL spells it.

    `members`: the number of members if not all of them were read.
    """

    project: GitlabProject
    errors: dict[str, Missing] = field(default_factory=dict)
    members: int | Missing | None = None


class Validation(GraphqlStruct):
    """Number of errors in the CODEOWNERS file."""

    total: Number


class ValidatedRepository(GraphqlStruct):
    """Repository with its validated CODEOWNERS file; null if the plan excludes validation."""

    validate_codeowner_file: Validation | None


# REST


class ProjectSettings(msgspec.Struct):
    """Settings of a project; some are absent if the account may not see them."""

    path_with_namespace: str
    merge_method: str | None = None
    only_allow_merge_if_pipeline_succeeds: bool | None = None
    merge_trains_enabled: bool | None = None


class ProtectedBranch(msgspec.Struct):
    """Rule for the branches that match its name; a star matches any text."""

    name: str
    allow_force_push: bool
    code_owner_approval_required: bool | None = None
    inherited: bool = False


class Approvals(msgspec.Struct):
    """Settings for approvals in a project; null if never set."""

    reset_approvals_on_push: bool | None
    merge_requests_disable_committers_approval: bool | None


class BranchRef(msgspec.Struct):
    """Something with a name."""

    name: str


class ApprovalRule(msgspec.Struct):
    """Number of approvals for merges into these branches, or into all if there are none."""

    approvals_required: Number
    rule_type: str = ""
    applies_to_all_protected_branches: bool = False
    protected_branches: list[BranchRef] = []


class PushRule(msgspec.Struct):
    """Conditions for pushes; conditions that the plan excludes are absent."""

    id: int
    reject_unsigned_commits: bool | msgspec.UnsetType | None = msgspec.UNSET


class GitlabTreeEntry(msgspec.Struct):
    """Entry of a tree: a file (`blob`), a folder (`tree`) or a submodule (`commit`)."""

    path: str
    type: str


def pick_part(data: Mapping[str, Any], *names: str) -> Any:
    """The value at this path of names; None if there is none."""
    found: Any = data
    for name in names:
        found = found.get(name) if isinstance(found, dict) else None
    return found


PER_PAGE: Final = 100

# GitLab's messages for too complex queries and for hidden data, and its code for a field that an
# edition lacks.
_TOO_COMPLEX: Final = "exceeds max complexity"
_NOT_SHOWN: Final = "you don't have permission"
_UNDEFINED: Final = "undefinedField"
_VERSION: Final = re.compile(r"\d{1,3}(?:\.\d{1,4}){1,2}", re.ASCII)


class GitlabQueryResult(NamedTuple):
    """Result of one query: data, and errors by the field of the project that they refer to.

    `failure` is the reason if there are no data. `raised` lists all errors with their paths.
    """

    data: Mapping[str, Any]
    errors: dict[str, Missing]
    failure: Missing | None = None
    raised: Sequence[tuple[tuple[object, ...], Missing]] = ()

    def below(self, names: tuple[object, ...]) -> Missing | None:
        """The first error at, below or above a path."""
        for found, missing in self.raised:
            if all(a == b for a, b in zip(found, names, strict=False)):
                return missing
        return None


class GitlabApi(CodeHostApi[GitlabOptions]):
    """Client for a GitLab instance, for one collection at the time `now`."""

    def __init__(
        self, client: HttpClient, options: GitlabOptions, memory: Memory, now: int
    ) -> None:
        super().__init__(client, options, memory, now)
        self._lacking: dict[str, dict[FieldPath, FieldPath]] = {}
        self._version = ""
        self._asking = asyncio.Lock()

    async def ask(
        self, document: str, *, optional: Collection[FieldPath] | None = None, **variables: Any
    ) -> GitlabQueryResult:
        """Send a GraphQL query.

        If the server doesn't know some of the `optional` fields, sends the query again without
        them: they become null, with an error that names the server's version. `optional` is None
        for a query that some editions lack.
        """
        lacking = self._lacking.setdefault(document, {})
        while True:
            # Concurrent queries may add to `lacking` meanwhile.
            left_out = dict(lacking)
            question = {"query": remove_fields(document, left_out), "variables": variables}
            answer = await self._client.post(self._options.graphql, json=question)
            found = make_gitlab_result(answer)
            refused = list_unknown_fields(answer.data.get("errors")) if _is_object(answer) else []
            if not refused or optional is None:
                break
            spared = code_host.match_optional_fields(refused, optional)
            if spared is None or spared.keys() <= left_out.keys():
                return found._replace(failure=await self._too_old(document, refused))
            lacking |= spared
        if not left_out or found.failure:
            return found
        code_host.answer_null(found.data, left_out)
        errors = {
            field: await self._too_old(document, [path]) for field, path in sorted(left_out.items())
        }
        return found._replace(
            errors=found.errors | {_find_error_field(path): errors[path] for path in errors},
            raised=[*found.raised, *errors.items()],
        )

    async def _too_old(self, document: str, refused: Collection[FieldPath]) -> Missing:
        """The reason for values whose fields this version or edition of GitLab doesn't know."""
        async with self._asking:
            if not self._version:
                answer = await self.get("/version")
                text = answer.data.get("version") if _is_object(answer) else None
                version = _VERSION.match(text) if isinstance(text, str) else None
                self._version = f"GitLab {version[0]}" if version else "this GitLab"
        fields = code_host.name_refused_fields(document, refused) or "a field"
        return Missing(Outcome.FEATURE_OFF, f"{self._version} lacks {fields} in GraphQL")

    async def get(self, target: str, **query: str | int) -> Answer:
        """Send a REST request; redirects from a project's former name are followed."""
        return await self._client.get(f"{self._options.rest}{target}", query=query, follow=True)

    async def one(self, target: str, type_: type[T]) -> T | Missing:
        """The REST answer as this type, or the reason that it is missing."""
        return (await self.get(target)).read_as(type_)

    async def every(
        self, target: str, type_: type[list[T]], *, pages: int, **query: str | int
    ) -> list[T] | Missing:
        """A complete REST list of at most `pages` pages, or the reason that it is incomplete."""
        found: list[T] = []
        more: dict[str, str] = {}
        asked: list[dict[str, str]] = []
        for _ in range(pages):
            asked.append(more)
            answer = await self.get(target, per_page=PER_PAGE, **query, **more)
            page = answer.read_as(type_)
            if isinstance(page, Missing):
                return page
            found += page
            more = find_next_page(answer)
            if not more:
                return found
            if more in asked:
                return REPEATED
        return report_too_many(pages * PER_PAGE, "rows in one list of GitLab")


def _is_object(answer: Answer) -> bool:
    return answer.ok and isinstance(answer.data, dict)


def make_gitlab_result(answer: Answer) -> GitlabQueryResult:
    """The data and errors of a GraphQL answer; data beside errors are kept."""
    if not answer.ok:
        return GitlabQueryResult({}, {}, answer.missing)
    if not isinstance(answer.data, dict):
        return GitlabQueryResult({}, {}, UNUSABLE)
    listed = answer.data.get("errors")
    errors = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    data = answer.data.get("data")
    if not isinstance(data, dict):
        return GitlabQueryResult({}, {}, _explain_query_error(errors[0]) if errors else UNUSABLE)
    raised: list[tuple[tuple[object, ...], Missing]] = []
    for error in errors:
        path = error.get("path")
        segments = tuple(path) if isinstance(path, list) else ()
        raised.append((segments, _explain_query_error(error)))
    return GitlabQueryResult(
        data, {_find_error_field(path): missing for path, missing in raised}, None, raised
    )


def _find_error_field(path: tuple[object, ...]) -> str:
    """The project's field in the path of an error; "" for the whole project."""
    match path:
        case ("project", str(name), *_):
            return name
        case _:
            return ""


def _explain_query_error(error: Mapping[str, Any]) -> Missing:
    extensions = error.get("extensions")
    if isinstance(extensions, dict) and extensions.get("code") == _UNDEFINED:
        return NO_PREMIUM
    message = error.get("message")
    if isinstance(message, str) and _NOT_SHOWN in message:
        return HIDDEN
    if isinstance(message, str) and _TOO_COMPLEX in message:
        return Missing(Outcome.TOO_LARGE, "the query is too complex")
    outcome, cause = judge_graphql_error(error)
    return Missing(
        outcome, "GitLab could not answer this" if outcome is Outcome.TRANSIENT else cause
    )


def find_next_page(answer: Answer) -> dict[str, str]:
    """The query parameters for the next page, from the Link header; empty after the last page.

    The header's URL itself is not used: behind a proxy, its host may differ from ours.
    """
    try:
        query = parse_qs(urlsplit(answer.link("next") or "").query)
    except ValueError:
        return {}
    return {name: query[name][0] for name in ("page_token", "page") if name in query}
