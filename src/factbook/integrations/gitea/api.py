"""Settings of a Gitea or Forgejo instance, and requests to it.

Answer types have only the fields in use. Of pull requests, only the few pages for merge times are
read, and the number ever merged.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from factbook.clock import DAY
from factbook.integrations import code_host
from factbook.integrations.code_host import CodeHostApi, CodeHostOptions, MergedPull, Slug
from factbook.integrations.integration import (
    find_location,
    get_annotations,
    get_stored_entry,
    report_no_annotation,
    store_entry,
)
from factbook.outbound.cache import exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.client import build_path
from factbook.outbound.outcomes import Answer, Missing, Outcome, report_too_many
from factbook.settings.option_tables import about


class GiteaOptions(CodeHostOptions, frozen=True, kw_only=True):
    """Instance of Gitea or Forgejo with one token."""

    API: ClassVar[str] = "/api/v1"
    EXAMPLE: ClassVar[str] = "git.example.com"
    # Names that Gitea allows; no other text of an annotation gets into a request.
    PATTERN: ClassVar[re.Pattern[str]] = re.compile(
        r"[a-z0-9][a-z0-9._-]{0,99}/[a-z0-9._-]{1,100}", re.ASCII
    )

    host: Annotated[
        str,
        about("Needed. Host that people and annotations name, with its port if it has one."),
    ] = ""
    api_url: Annotated[str, about("Address of the interface. Empty: `https://<host>/api/v1`.")] = ""
    token: Annotated[str, about("Secret. Needed. An access token.")] = ""
    organizations: Annotated[
        list[str], about("Owners to ask for. Empty: every owner that annotations name.")
    ] = msgspec.field(default_factory=list)

    @property
    def owners(self) -> Sequence[str]:
        """The organizations."""
        return self.organizations

    def problems(self) -> Iterator[str]:
        """The mistakes in the table."""
        if not self.host:
            yield "a host is needed"
        yield from super().problems()
        if not self.token:
            yield "a token is needed"


def find_gitea_target(options: GiteaOptions, entity: Mapping[str, Any]) -> str | Missing:
    """`owner/name` in lower case, or the reason that there is none at this host.

    The slug of this host takes precedence over a location on this host.
    """
    given = get_annotations(entity).get(options.slug)
    if isinstance(given, str):
        return options.named(given)
    place = find_location(entity)
    if place is None or place.host != options.host:
        return report_no_annotation(f"no repository on {options.host}")
    return options.located(place)


Form = TypeVar("Form")
Row = TypeVar("Row")

# The default maximum of servers.
PAGE: Final = 50
# 5,000 pull requests or issues.
MOST_PAGES: Final = 100

HIDDEN: Final = Missing(Outcome.DENIED, "hidden from the credential")
NO_TOTAL: Final = Missing(Outcome.TRANSIENT, "no total in the answer")


class Rows(NamedTuple, Generic[Row]):
    """Part of a list; `total` is None if the host doesn't report it."""

    rows: list[Row]
    total: int | None

    def ends(self, read: int) -> bool:
        """True if the list ends with these rows; `read` counts all rows so far."""
        return not self.rows or (self.total is not None and read >= self.total)


class GiteaApi(CodeHostApi[GiteaOptions]):
    """Client for a Gitea instance, for one collection at the time `now`."""

    async def get(self, target: str, **query: str | int) -> Answer:
        """Send a request; redirects from a repository's former name are followed."""
        return await self._client.get(f"{self._options.rest}{target}", query=query, follow=True)

    async def one(
        self, target: str, form: type[Form], hidden: Missing | None = HIDDEN, **query: str | int
    ) -> Form | Missing:
        """The answer in this form, or the reason that it is missing.

        `hidden` replaces "denied" and "not found", as Gitea often answers 404 for hidden objects.
        None keeps the original reason.
        """
        found = await self._ask(target, form, hidden, query)
        return found if isinstance(found, Missing) else found[0]

    async def page(
        self, target: str, form: type[list[Row]], hidden: Missing = HIDDEN, **query: str | int
    ) -> Rows[Row] | Missing:
        """One page of a list."""
        found = await self._ask(target, form, hidden, query)
        return found if isinstance(found, Missing) else Rows(*found)

    async def total(self, target: str, **query: str | int) -> int | Missing:
        """The number of rows in a list."""
        found = await self.page(target, list[Any], HIDDEN, limit=1, **query)
        if isinstance(found, Missing):
            return found
        return NO_TOTAL if found.total is None else found.total

    async def pages(
        self,
        target: str,
        form: type[list[Row]],
        hidden: Missing = HIDDEN,
        *,
        what: str,
        most: int = MOST_PAGES,
        **query: str | int,
    ) -> tuple[Rows[Row], bool] | Missing:
        """The rows of at most `most` pages, and true if the list is complete.

        Reads only the first page if the host reports more rows, or a recent run found more; `what`
        distinguishes lists of one URL.
        """
        found = Rows[Row]([], None)
        key = f"{what}:{self.host}{target}"
        is_noted = await exceeds_noted_limit(self.memory, key, most, self.now)
        for number in range(1, 2 if is_noted else most + 1):
            page = await self.page(target, form, hidden, page=number, limit=PAGE, **query)
            if isinstance(page, Missing):
                return page
            found = Rows(found.rows + page.rows, page.total)
            if page.ends(len(found.rows)):
                return found, True
            if page.total is not None and page.total > most * PAGE:
                return found, False
        if not is_noted:
            await note_exceeded_limit(self.memory, key, most, self.now)
        return found, False

    async def _ask(
        self, target: str, form: type[Form], hidden: Missing | None, query: dict[str, str | int]
    ) -> tuple[Form, int | None] | Missing:
        answer = await self.get(target, **query)
        if hidden and answer.outcome in {Outcome.DENIED, Outcome.NOT_FOUND}:
            return hidden
        found = answer.read_as(form)
        if isinstance(found, Missing):
            return found
        text = answer.headers.get("x-total-count", "")
        is_total = text.isascii() and text.isdigit() and len(text) < 12
        return found, int(text) if is_total else None


# Source: models/user/user_system.go of Gitea and Forgejo. Lower ids are the server's own actors.
_GHOST: Final = -1

Moment = Annotated[datetime, Meta(tz=True)]
Commit = Annotated[str, Meta(pattern=r"\A(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")]


class GiteaRepository(msgspec.Struct):
    """Repository; `full_name` is its current name."""

    id: int
    full_name: Slug
    empty: bool
    default_branch: str = ""
    mirror: bool = False
    has_issues: bool = True
    has_pull_requests: bool = True
    external_tracker: Any = None


class GiteaUser(msgspec.Struct):
    """Account; the server's own accounts have negative ids."""

    login: str
    id: int = 0

    @property
    def is_gone(self) -> bool:
        """True for the account that stands for all deleted ones."""
        return self.id == _GHOST

    @property
    def is_bot(self) -> bool:
        """True for the server's own accounts, such as that of its actions."""
        return self.id < _GHOST


class GiteaPullRequest(msgspec.Struct):
    """Pull request; `merged_at` is None if it was not merged."""

    number: int
    title: str
    created_at: Moment
    updated_at: Moment
    merged_at: Moment | None = None
    user: GiteaUser | None = None


class PullOfIssue(msgspec.Struct):
    """Pull request as a list of issues shows it."""

    merged: bool


class GiteaIssue(msgspec.Struct):
    """Issue, or a pull request if `pull_request` is not None."""

    number: int
    closed_at: Moment | None = None
    pull_request: PullOfIssue | None = None


class BranchCommit(msgspec.Struct):
    """Commit at the head of a branch."""

    id: Commit


class GiteaBranch(msgspec.Struct):
    """Branch, as visible with read access to the code.

    `effective_branch_protection_name` is empty unless the credential may administer the repository.
    """

    commit: BranchCommit
    protected: bool
    required_approvals: int | None = None
    enable_status_check: bool | None = None
    effective_branch_protection_name: str = ""


class ProtectionRule(msgspec.Struct):
    """Branch protection rule; fields that the server's version lacks are None.

    `block_admin_merge_override` is Gitea's name and `apply_to_admins` Forgejo's.
    """

    rule_name: str = ""
    branch_name: str = ""
    enable_force_push: bool | None = None
    enable_status_check: bool | None = None
    required_approvals: int | None = None
    block_on_official_review_requests: bool | None = None
    block_on_outdated_branch: bool | None = None
    dismiss_stale_approvals: bool | None = None
    require_signed_commits: bool | None = None
    block_admin_merge_override: bool | None = None
    apply_to_admins: bool | None = None


class GiteaTreeEntry(msgspec.Struct):
    """Entry of a tree: a file (`blob`), a folder (`tree`) or a submodule (`commit`)."""

    path: str
    type: str


class GiteaTreePage(msgspec.Struct):
    """Page of a tree; `truncated` if there are more, `total_count` if the server states it."""

    tree: list[GiteaTreeEntry]
    truncated: bool = False
    total_count: int | None = None


MOST_CLOSED: Final = MOST_PAGES * PAGE
# Deleted pull requests leave the count with the next full listing.
_KEPT_FOR: Final = 30 * DAY

_CHANGED: Final = Missing(Outcome.TRANSIENT, "the list changed while it was read")
_UNCOUNTABLE: Final = report_too_many(MOST_CLOSED, "closed pull requests to count")
_TOO_MANY_PAGES: Final = report_too_many(MOST_PAGES, "pages of closed pull requests to count")
_TOO_MANY_RECENT: Final = report_too_many(MOST_PAGES, "pages of pull requests to read for 30 days")
_HIDDEN_PULLS: Final = Missing(Outcome.DENIED, "counting merged pull requests needs read:issue")


class Closed(NamedTuple):
    """Figures of the closed pull requests.

    `merged` has the pull requests that merge times need; `total` is the number of closed pull
    requests, `ever_merged` the number of merged ones.
    """

    merged: list[MergedPull]
    total: int | Missing
    ever_merged: int | Missing


@dataclass
class _Recent:
    """The most recently updated closed pull requests; `whole`: these are all of them."""

    pulls: dict[int, GiteaPullRequest] = field(default_factory=dict)
    total: int | None = None
    whole: bool = False

    @property
    def merged(self) -> list[MergedPull]:
        found = ((pull, pull.merged_at) for pull in self.pulls.values())
        return [
            _make_gitea_pull(pull, code_host.convert_to_milliseconds(moment))
            for pull, moment in found
            if moment
        ]

    @property
    def updated(self) -> list[int]:
        return [code_host.convert_to_milliseconds(pull.updated_at) for pull in self.pulls.values()]


class _StoredMerges(msgspec.Struct, array_like=True):
    """Numbers of all merged pull requests that were not updated after `until`.

    `since` is the time of the full listing.
    """

    since: int
    until: int
    numbers: list[int]


async def get_closed_pulls(
    api: GiteaApi, repository: GiteaRepository, cutoff: int
) -> Closed | Missing:
    """The figures of a repository's closed pull requests, or the reason for their absence."""
    recent = await _list_recent_pulls(api, repository, cutoff)
    if isinstance(recent, Missing):
        return recent
    total = NO_TOTAL if recent.total is None else recent.total
    return Closed(recent.merged, total, await _count_merged_pulls(api, repository, recent))


async def _list_recent_pulls(
    api: GiteaApi, repository: GiteaRepository, cutoff: int
) -> _Recent | Missing:
    """The recently updated pull requests that merge times need."""
    target = build_path("repos", *repository.full_name.split("/"), "pulls")
    what = f"recent:{api.host}/{repository.id}"
    if await exceeds_noted_limit(api.memory, what, MOST_PAGES, api.now):
        return _TOO_MANY_RECENT
    found = _Recent()
    read = 0
    for number in range(1, MOST_PAGES + 1):
        page = await api.page(
            target,
            list[GiteaPullRequest],
            state="closed",
            sort="recentupdate",
            page=number,
            limit=PAGE,
        )
        if isinstance(page, Missing):
            return page
        read += len(page.rows)
        for pull in page.rows:
            # A list may shift between two pages.
            found.pulls.setdefault(pull.number, pull)
        found.total = page.total
        found.whole = page.ends(read)
        if found.whole or code_host.is_population_complete(
            found.merged, min(found.updated), cutoff, bots=True
        ):
            return found
    await note_exceeded_limit(api.memory, what, MOST_PAGES, api.now)
    return _TOO_MANY_RECENT


async def _count_merged_pulls(
    api: GiteaApi, repository: GiteaRepository, recent: _Recent
) -> int | Missing:
    total = recent.total
    if recent.whole:
        return _CHANGED if len(recent.pulls) < (total or 0) else len(recent.merged)
    key = f"merged:{api.host}/{repository.id}"
    kept = await get_stored_entry(api.memory, key, _StoredMerges)
    uncountable = total is not None and total > MOST_CLOSED
    until = max(recent.updated)
    if kept and (uncountable or 0 <= api.now - kept.since < _KEPT_FOR):
        changed = await _list_merged_numbers(api, repository, kept.until)
        if isinstance(changed, Missing):
            return changed
        numbers = changed.union(kept.numbers)
        # More merged than closed pull requests means that some were deleted.
        if total is None or len(numbers) <= total:
            changes = _StoredMerges(kept.since, until, sorted(numbers))
            if changes != kept:
                await store_entry(api.memory, key, changes)
            return len(numbers)
    if uncountable:
        return _UNCOUNTABLE
    listed = await _list_merged_numbers(api, repository, 0)
    if not isinstance(listed, Missing):
        await store_entry(api.memory, key, _StoredMerges(api.now, until, sorted(listed)))
    return listed if isinstance(listed, Missing) else len(listed)


async def _list_merged_numbers(
    api: GiteaApi, repository: GiteaRepository, since: int
) -> set[int] | Missing:
    """The numbers of the merged pull requests that were updated since."""
    target = build_path("repos", *repository.full_name.split("/"), "issues")
    found = await api.pages(
        target,
        list[GiteaIssue],
        _HIDDEN_PULLS,
        what="changed" if since else "ever",
        type="pulls",
        state="closed",
        since=code_host.format_timestamp(since),
    )
    if isinstance(found, Missing):
        return found
    issues, whole = found
    if not whole:
        return _TOO_MANY_PAGES
    if len({issue.number for issue in issues.rows}) < (issues.total or 0):
        return _CHANGED
    return {one.number for one in issues.rows if one.pull_request and one.pull_request.merged}


def _make_gitea_pull(pull: GiteaPullRequest, merged_at: int) -> MergedPull:
    user = None if pull.user is None or pull.user.is_gone else pull.user
    return MergedPull(
        pull.number,
        pull.title,
        user.login if user else None,
        user is not None and user.is_bot,
        code_host.convert_to_milliseconds(pull.created_at),
        merged_at,
        code_host.convert_to_milliseconds(pull.updated_at),
    )
