"""Options, names of repositories, answers and facts that the code hosts have in common.

A repository is named by its path at the host: `owner/name`, or `group/subgroup/name`.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Final, Generic, TypeVar

import msgspec
from msgspec import Meta

from factbook.integrations import file_types, merge_times
from factbook.integrations.configuration import InstanceOptions
from factbook.integrations.integration import Leaves, bad_annotation, no_annotation, total
from factbook.integrations.locations import SourceLocation, slug
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient
from factbook.outbound.git import Clones
from factbook.outbound.outcomes import Missing
from factbook.settings.option_tables import HOST_PATTERN, about, url_origin

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
            return no_annotation("the annotation is blank")
        place = slug(text, self.host)
        if place is None:
            return bad_annotation(f"what the annotation names is not {self.FORM} on {self.host}")
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
            return bad_annotation(f"what the annotation names is not {self.FORM}")
        wanted = {owner.lower() for owner in self.owners}
        if wanted and parts[0].lower() not in wanted:
            return no_annotation(f"{self.OWNER} that is not configured")
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


def groups(
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

    `merging` are the figures of `merge_times`, `paths` those of all files.
    """
    enabled = protection if isinstance(protection, Missing) else protection["enabled"]
    return {
        "codehost.pullRequests": pull_requests,
        "codehost.mergeTime": _part(merging, "mergeTime"),
        "codehost.issues": issues,
        "codehost.latestMergedPR": _part(merging, "latestMergedPR"),
        "codehost.collaboration": collaboration,
        "codehost.branchProtection": protection,
        "codehost.codeReview": review,
        "security": {"branchProtection": enabled},
        "repository": paths if isinstance(paths, Missing) else file_types.facts(paths),
    }


def pull_requests(
    total: int | Missing, merged: int | Missing, open_: int | Missing, last_month: Any
) -> Leaves:
    """The leaves of pullRequests; `last_month` is a number, or holds it: `merging`."""
    if isinstance(last_month, Mapping):
        last_month = last_month["pullRequests"]["mergedLastMonth"]
    return {
        "total": total,
        "merged": merged,
        "open": open_,
        "mergedPercentage": merge_times.percentage(merged, total),
        "mergedLastMonth": last_month,
    }


def issues(open_: int | Missing, closed: int | Missing, last_month: int | Missing) -> Leaves:
    """The leaves of issues."""
    return {
        "total": total((open_, closed)),
        "open": open_,
        "closed": closed,
        "closedLastMonth": last_month,
    }


def codeowners(
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


def collaborators(logins: Sequence[str] | Missing, count: int | Missing) -> Leaves:
    """The leaves about collaborators."""
    return {"collaborators": logins, "collaboratorCount": count}


def _part(merging: Leaves | Missing, group: str) -> Leaves | Missing:
    return merging if isinstance(merging, Missing) else merging[group]
