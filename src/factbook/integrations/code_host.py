"""Options, names of repositories, answers and facts that the code hosts have in common.

A repository is named by its path at the host: `owner/name`, or `group/subgroup/name`.

Merge times of pull requests come from as few pages as the figures need. Population: the 100 pull
requests merged last and all that were merged in the last 30 days, which is complete long before
every page is read. Times are milliseconds since the epoch.
"""

import heapq
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Final, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from factbook.clock import DAY, HOUR, SECOND
from factbook.integrations import files
from factbook.integrations.integration import (
    InstanceOptions,
    Leaves,
    SourceLocation,
    report_bad_annotation,
    report_no_annotation,
    resolve_slug,
    sum_counts,
)
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient
from factbook.outbound.git import Clones
from factbook.outbound.outcomes import Missing, Outcome
from factbook.settings.option_tables import HOST_PATTERN, about, url_origin

MONTH: Final = 30 * DAY
NEWEST_PULLS: Final = 100
# Of a repository where bots do nearly everything, people's are looked for among so many.
MOST_WITH_BOTS: Final = 1_000


class MergedPull(NamedTuple):
    """A merged pull request; `author` is None when the account is gone."""

    number: int
    title: str
    author: str | None
    is_bot: bool
    created_at: int
    merged_at: int
    updated_at: int

    @property
    def hours(self) -> float:
        """The time from opening to merging."""
        return (self.merged_at - self.created_at) / HOUR


def convert_to_milliseconds(moment: datetime) -> int:
    """Milliseconds since the epoch."""
    return round(moment.timestamp() * SECOND)


def format_timestamp(moment: int) -> str:
    """A time as code hosts read it, to the second."""
    return datetime.fromtimestamp(moment // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_population_complete(
    seen: Iterable[MergedPull], last_updated: int, cutoff: int, *, bots: bool
) -> bool:
    """True if the pages read so far, in descending order of update, hold the whole population.

    `last_updated` is the update time of the last pull request read. A merge updates a pull request,
    so none on a later page was merged after it. Without `bots`, reading may stop after
    `MOST_WITH_BOTS` pull requests and those of the last month.
    """
    if last_updated >= cutoff:
        return False
    pulls = list(seen)
    newest = heapq.nlargest(
        NEWEST_PULLS, (one.merged_at for one in pulls if bots or not one.is_bot)
    )
    if len(newest) == NEWEST_PULLS and newest[-1] >= last_updated:
        return True
    if bots or len(pulls) < MOST_WITH_BOTS:
        return False
    return max(one.merged_at for one in pulls) >= last_updated


def make_merge_figures(
    seen: Iterable[MergedPull], cutoff: int, *, bots: bool = True
) -> dict[str, dict[str, Any]]:
    """The groups mergeTime and latestMergedPR, and pullRequests.mergedLastMonth.

    `seen` must be `complete`, or hold every pull request. Without `bots`, merge times exclude pull
    requests of bots. A figure without any pull request to compute it from is not applicable.
    """
    newest = sorted(seen, key=lambda pull: pull.merged_at, reverse=True)
    counted = [pull for pull in newest if bots or not pull.is_bot]
    month = [pull for pull in counted if pull.merged_at >= cutoff]
    population = counted[: max(NEWEST_PULLS, len(month))]
    return {
        "pullRequests": {"mergedLastMonth": sum(pull.merged_at >= cutoff for pull in newest)},
        "mergeTime": {
            **_make_merge_times(population, "Hours"),
            **_make_merge_times(month, "LastMonthHours"),
        },
        "latestMergedPR": _describe_latest(newest),
    }


def compute_merged_percentage(merged: int | Missing, total: int | Missing) -> float | Missing:
    """The share of merged pull requests among all, from 0 to 100."""
    if isinstance(total, Missing):
        return total
    if isinstance(merged, Missing):
        return merged
    if total == 0:
        return Missing(Outcome.NOT_APPLICABLE, "there are no pull requests")
    return round(100 * merged / total, 2)


def _make_merge_times(pulls: list[MergedPull], suffix: str) -> dict[str, Any]:
    if not pulls:
        none = Missing(Outcome.NOT_APPLICABLE, "no merged pull request to take it of")
        return {f"{name}{suffix}": none for name in ("avg", "min", "max")}
    hours = [pull.hours for pull in pulls]
    return {
        f"avg{suffix}": round(sum(hours) / len(hours), 2),
        f"min{suffix}": round(min(hours), 2),
        f"max{suffix}": round(max(hours), 2),
    }


def _describe_latest(newest: list[MergedPull]) -> dict[str, Any]:
    if not newest:
        none = Missing(Outcome.NOT_APPLICABLE, "no pull request was merged")
        return {"title": none, "author": none}
    gone = Missing(Outcome.NOT_APPLICABLE, "the author's account is gone")
    return {"title": newest[0].title, "author": newest[0].author or gone}


Options = TypeVar("Options", bound="CodeHostOptions")
T = TypeVar("T")

# Accepted where a file is asked for.
ANYTHING: Final = {"accept": "*/*"}
# They become parts of addresses.
Slug = Annotated[str, Meta(pattern=r"\A(?!\.{1,2}/)[\w.-]+/(?!\.{1,2}\Z)[\w.-]+\Z")]


class CodeHostOptions(InstanceOptions, frozen=True, kw_only=True):
    """Instance of a code host.

    `API` is the path of its interface, `EXAMPLE` a host. `FORM` and `PATTERN` are those of the name
    of a repository, which is in lower case unless the host `KEEPS_CASE`. `OWNER` is the word for
    the first part of a name.
    """

    API: ClassVar[str] = ""
    EXAMPLE: ClassVar[str]
    FORM: ClassVar[str] = "owner/name"
    OWNER: ClassVar[str] = "an organization"
    PATTERN: ClassVar[re.Pattern[str]]
    KEEPS_CASE: ClassVar[bool] = False

    host: Annotated[str, about("Host that people and annotations name.")] = ""
    api_url: Annotated[str, about("Address of the interface.")] = ""

    def problems(self) -> Iterator[str]:
        """The mistakes in the table."""
        if not HOST_PATTERN.fullmatch(self.host):
            yield f"host has to be a host name in lower case, such as {self.EXAMPLE}"
        if not self.rest.startswith(("https://", "http://")):
            yield "api_url has to begin with https://"

    @property
    def rest(self) -> str:
        """The address of the REST interface, without a slash at its end."""
        return (self.api_url or f"https://{self.host}{self.API}").rstrip("/")

    @property
    def git(self) -> str:
        """The address of the host's repositories, above that of its interfaces."""
        return self.rest.removesuffix(self.API)

    @property
    def origin(self) -> str:
        """Scheme and host of its interfaces."""
        return url_origin(self.rest)

    @property
    def slug(self) -> str:
        """The annotation of this host; an annotation's name cannot have a port."""
        return f"{self.host.partition(':')[0]}/project-slug"

    def named(self, text: str) -> str | Missing:
        """The repository that a slug names; a slug may be a URL on this host."""
        if not text.strip():
            return report_no_annotation("the annotation is blank")
        place = resolve_slug(text, self.host)
        if place is None:
            return report_bad_annotation(
                f"what the annotation names is not {self.FORM} on {self.host}"
            )
        return self.repository(self.path_of(place) if place.scheme else place.path)

    def located(self, place: SourceLocation) -> str | Missing:
        """The repository at a location on this host."""
        return self.repository(self.path_of(place))

    def path_of(self, place: SourceLocation) -> str:
        """The path of a repository: two segments; the rest is a branch and a folder."""
        return "/".join(place.path.split("/")[:2]).removesuffix(".git")

    def repository(self, path: str) -> str | Missing:
        """The name of the repository with this path, or the reason that it is not asked for."""
        name = path if self.KEEPS_CASE else path.lower()
        parts = name.split("/")
        if not self.PATTERN.fullmatch(name) or {".", ".."} & set(parts):
            return report_bad_annotation(f"what the annotation names is not {self.FORM}")
        wanted = {owner.lower() for owner in self.owners}
        if wanted and parts[0].lower() not in wanted:
            return report_no_annotation(f"{self.OWNER} that is not configured")
        return name

    @property
    def owners(self) -> Sequence[str]:
        """The owners of the repositories that may be asked for; empty: all."""
        return ()


class CodeHostApi(Generic[Options]):
    """Client for an instance of a code host, with the time of one collection."""

    def __init__(self, client: HttpClient, options: Options, memory: Memory, now: int) -> None:
        self._client = client
        self._options = options
        self.host = options.host
        self.clones = Clones(client.further[options.git])
        self.memory = memory
        self.now = now

    def elsewhere(self, bases: Iterable[str]) -> dict[str, HttpClient]:
        """The clients of other hosts, by their base URLs."""
        return {base: self._client.further[base] for base in bases}


class GraphqlStruct(msgspec.Struct, rename="camel"):
    """Names in camel case; fields not requested are ignored."""


class ConnectionPosition(GraphqlStruct):
    """Position at which a connection of GraphQL continues."""

    has_next_page: bool
    end_cursor: str | None


class NodePage(GraphqlStruct, Generic[T]):
    """Page of a connection, or several combined; a node that may not be seen is null."""

    nodes: list[T | None]
    page_info: ConnectionPosition

    @property
    def known(self) -> list[T]:
        """The visible nodes."""
        return [node for node in self.nodes if node is not None]


def make_code_host_groups(
    *,
    merging: Leaves | Missing,
    pull_requests: Leaves | Missing,
    issues: Leaves | Missing,
    collaboration: Leaves,
    protection: Leaves | Missing,
    review: Leaves,
    paths: list[str] | Missing,
) -> dict[str, Leaves | Missing]:
    """The groups of the shapes that code hosts fill, each a reason or its leaves.

    `merging` are the figures of `make_merge_figures`, `paths` those of all files.
    """
    enabled = protection if isinstance(protection, Missing) else protection["enabled"]
    return {
        "codehost.pullRequests": pull_requests,
        "codehost.mergeTime": _pick_group(merging, "mergeTime"),
        "codehost.issues": issues,
        "codehost.latestMergedPR": _pick_group(merging, "latestMergedPR"),
        "codehost.collaboration": collaboration,
        "codehost.branchProtection": protection,
        "codehost.codeReview": review,
        "security": {"branchProtection": enabled},
        "repository": paths if isinstance(paths, Missing) else files.make_file_facts(paths),
    }


def make_pull_request_leaves(
    total: int | Missing, merged: int | Missing, open_: int | Missing, last_month: Any
) -> Leaves:
    """The leaves of pullRequests; `last_month` is a number, or holds it: `merging`."""
    if isinstance(last_month, Mapping):
        last_month = last_month["pullRequests"]["mergedLastMonth"]
    return {
        "total": total,
        "merged": merged,
        "open": open_,
        "mergedPercentage": compute_merged_percentage(merged, total),
        "mergedLastMonth": last_month,
    }


def make_issue_leaves(
    open_: int | Missing, closed: int | Missing, last_month: int | Missing
) -> Leaves:
    """The leaves of issues."""
    return {
        "total": sum_counts((open_, closed)),
        "open": open_,
        "closed": closed,
        "closedLastMonth": last_month,
    }


def make_codeowners_leaves(
    paths: Collection[str] | Missing, places: Collection[str], errors: int | Missing
) -> Leaves:
    """The leaves about a CODEOWNERS file, which counts at some places; `errors` are those in it."""
    if isinstance(paths, Missing):
        uses: bool | Missing = paths
        errors = paths
    else:
        uses = not set(places).isdisjoint(paths)
        errors = errors if uses else 0
    return {
        "usesCodeowners": uses,
        "codeownersHasErrors": errors if isinstance(errors, Missing) else errors > 0,
        "codeownersErrorCount": errors,
    }


def make_collaborator_leaves(logins: Sequence[str] | Missing, count: int | Missing) -> Leaves:
    """The leaves about collaborators."""
    return {"collaborators": logins, "collaboratorCount": count}


def _pick_group(merging: Leaves | Missing, group: str) -> Leaves | Missing:
    return merging if isinstance(merging, Missing) else merging[group]
