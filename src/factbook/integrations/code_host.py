"""Options, names, files, answers and facts that all code hosts share.

The name of a repository is its path at the host: `owner/name`, or `group/subgroup/name`.

The file paths of a commit are stored until HEAD moves. A tree that takes too many calls is read
from a clone without file contents. Comparisons of file names ignore case, and a file may have
several types.

Merge times need only a few pages: their population is the last 100 merged pull requests, plus all
that were merged in the last 30 days. Times are milliseconds since the epoch.
"""

import heapq
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Final, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from factbook.clock import DAY, HOUR, SECOND
from factbook.integrations.integration import (
    InstanceOptions,
    Leaves,
    SourceLocation,
    get_stored_entry,
    report_bad_annotation,
    report_no_annotation,
    resolve_slug,
    store_entry,
    sum_counts,
)
from factbook.outbound.cache import Memory, exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.client import HttpClient
from factbook.outbound.git import Clones, report_too_large
from factbook.outbound.outcomes import Missing, Outcome
from factbook.settings.option_tables import HOST_PATTERN, about, url_origin

# Names or aliases of the enclosing fields, followed by the field's own.
FieldPath = tuple[str, ...]

# Error codes for a document with parts that the server's schema lacks.
_UNKNOWN: Final = frozenset(
    {"undefinedField", "argumentNotAccepted", "argumentLiteralsIncompatible", "undefinedType"}
)
_TOKEN: Final = re.compile(r"\([^()]*\)|[{}]|\w+:?")
_EMPTY: Final = re.compile(r"(?:\w+: )?\w+(?: \([^()]*\))? \{\s*\}")
_VARIABLE: Final = re.compile(r"\$(\w+): [\w!\[\]]+")


def list_unknown_fields(errors: object) -> list[FieldPath]:
    """The paths of fields that the server doesn't know, or not with these arguments."""
    found = []
    for error in errors if isinstance(errors, list) else []:
        extensions = error.get("extensions") if isinstance(error, Mapping) else None
        code = extensions.get("code") if isinstance(extensions, Mapping) else None
        if code in _UNKNOWN:
            path = error.get("path")
            # The first element is the operation.
            names = path[1:] if isinstance(path, list) else []
            found.append(tuple(name for name in names if isinstance(name, str)))
    return found


def remove_fields(document: str, fields: Collection[FieldPath]) -> str:
    """The query without these fields, and without variables that only they use."""
    if not fields:
        return document
    head, _, body = document.partition("{")
    body = " ".join(
        token
        for path, token in _walk_fields(body)
        if not any(path[:size] in fields for size in range(1, len(path) + 1))
    )
    while (found := _EMPTY.sub("", body)) != body:
        body = found
    variables = set(re.findall(r"\$\w+", body))
    used = [one[0] for one in _VARIABLE.finditer(head) if f"${one[1]}" in variables]
    name = head.partition("(")[0].strip()
    return f"{name}({', '.join(used)}) {{ {body}" if used else f"{name} {{ {body}"


def _walk_fields(body: str) -> Iterator[tuple[FieldPath, str]]:
    """The tokens of a query's body, each with the path of its field."""
    path: list[str] = []
    name, is_aliased = "", False
    for part in _TOKEN.findall(body):
        if part == "}":
            yield tuple(path), part
            if path:
                path.pop()
            continue
        if part[0] not in "({" and not is_aliased:
            name = part.rstrip(":")
        is_aliased = part.endswith(":")
        yield (*path, name), part
        if part == "{":
            path.append(name)


def match_optional_fields(
    refused: Collection[FieldPath], optional: Collection[FieldPath]
) -> dict[FieldPath, FieldPath] | None:
    """Map optional fields to a refused path in each; None if one path is in none of them."""
    found: dict[FieldPath, FieldPath] = {}
    for path in refused:
        prefixes = (path[:size] for size in range(1, len(path) + 1))
        field = next((one for one in prefixes if one in optional), None)
        if field is None:
            return None
        found.setdefault(field, path)
    return found


def name_refused_fields(document: str, refused: Collection[FieldPath]) -> str:
    """The names of refused fields, limited to words of our own document."""
    known = set(re.findall(r"\w+", document))
    return ", ".join(sorted({path[-1] for path in refused if path and path[-1] in known}))


def answer_null(data: Mapping[str, Any], paths: Collection[FieldPath]) -> None:
    """Set removed fields directly below a root field to null."""
    for root, *names_ in paths:
        if len(names_) == 1 and isinstance(data.get(root), dict):
            data[root].setdefault(names_[0], None)


Paths = list[str]


class _StoredPaths(msgspec.Struct, array_like=True):
    oid: str
    paths: Paths


async def recall_paths(memory: Memory, repository: str | int, oid: str) -> Paths | None:
    """The stored paths at this commit; None if there are none.

    `repository` is the host's permanent name for it, such as its id.
    """
    stored = await get_stored_entry(memory, _make_tree_key(repository), _StoredPaths)
    return stored.paths if stored and stored.oid == oid else None


async def keep_paths(memory: Memory, repository: str | int, oid: str, paths: Paths) -> None:
    """Store the paths at this commit, replacing those of another one."""
    await store_entry(memory, _make_tree_key(repository), _StoredPaths(oid, paths))


class RepositoryTree(NamedTuple):
    """File tree at commit `oid`; `repository` is a permanent name, `name` the path to clone.

    `call` reads it with API calls, or returns the reason if that takes more than `most_calls`.
    """

    repository: str | int
    oid: str
    name: str
    call: Callable[[], Awaitable[Paths | Missing]]
    most_calls: int


async def read_file_tree(
    memory: Memory, tree: RepositoryTree, copies: Clones, now: int
) -> Paths | Missing:
    """The paths of all files, unordered; from storage if this commit was read before."""
    found = await recall_paths(memory, tree.repository, tree.oid)
    if found is not None:
        return found
    read = await _read_as_before(memory, tree, copies, now)
    if not isinstance(read, Missing):
        await keep_paths(memory, tree.repository, tree.oid, read)
    return read


async def _read_as_before(
    memory: Memory, tree: RepositoryTree, copies: Clones, now: int
) -> Paths | Missing:
    """The paths, without trying a method that recently found the tree too large."""
    by_calls, by_clone = f"tree:{tree.repository}", f"clone:{tree.repository}"
    if not await exceeds_noted_limit(memory, by_calls, tree.most_calls, now):
        found = await tree.call()
        if not isinstance(found, Missing) or found.outcome is not Outcome.TOO_LARGE:
            return found
        await note_exceeded_limit(memory, by_calls, tree.most_calls, now)
    if await exceeds_noted_limit(memory, by_clone, copies.limits, now):
        return report_too_large(copies.limits)
    found = await copies.paths(tree.name)
    if not isinstance(found, Missing) or found.retried:
        return found
    if found.outcome is Outcome.TOO_LARGE:
        await note_exceeded_limit(memory, by_clone, copies.limits, now)
        return found
    detail = f"the tree takes too many calls, and a clone failed: {found.detail}"
    return Missing(Outcome.TOO_LARGE, detail)


def _make_tree_key(repository: str | int) -> str:
    return f"tree:{repository}"


_TYPES_BY_SUFFIX: Final[dict[str, str]] = {
    **dict.fromkeys(("yml", "yaml"), "yaml"),
    **dict.fromkeys(("js", "jsx", "mjs", "cjs", "ts", "tsx"), "javascript"),
    **dict.fromkeys(("py", "pyi"), "python"),
    **dict.fromkeys(("md", "mdx", "rst", "adoc", "txt"), "docs"),
    **dict.fromkeys(("json", "toml", "ini", "cfg", "conf", "properties"), "config"),
    "dockerfile": "docker",
}
_TYPES: Final = ("docker", "yaml", "javascript", "python", "docs", "config")
_CATALOG: Final = frozenset({"catalog-info.yaml", "catalog-info.yml"})


def make_file_facts(paths: Iterable[str]) -> dict[str, Any]:
    """Facts of the repository shape from the paths of all files.

    `filePaths` is sorted by code point; `inCatalog` is true if any folder has a catalog-info file.
    """
    known = sorted(paths)
    counts = dict.fromkeys(_TYPES, 0)
    in_catalog = False
    for path in known:
        for type_ in list_file_types(path):
            counts[type_] += 1
        in_catalog = in_catalog or path.rpartition("/")[2].lower() in _CATALOG
    return {
        "filePaths": known,
        "totalFiles": len(known),
        "inCatalog": in_catalog,
        **{f"fileTypes.{type_}": count for type_, count in counts.items()},
    }


def list_file_types(path: str) -> set[str]:
    """The types that a file counts towards, by its path."""
    lower = path.lower()
    name = lower.rpartition("/")[2]
    stem, dot, suffix = name.rpartition(".")
    types = {_TYPES_BY_SUFFIX[suffix]} if dot and suffix in _TYPES_BY_SUFFIX else set()
    is_compose = suffix in {"yml", "yaml"} and stem.startswith(("compose", "docker-compose"))
    if is_compose or name.startswith("dockerfile") or name in {"containerfile", ".dockerignore"}:
        types.add("docker")
    if lower.startswith("docs/"):
        types.add("docs")
    if _is_config_file(name, dot + suffix):
        types.add("config")
    return types


def _is_config_file(name: str, suffix: str) -> bool:
    """True for environment files, .editorconfig and dot files that end with rc."""
    return (
        name.startswith(".env")
        or suffix.startswith(".env")
        or suffix == ".editorconfig"
        or (name.startswith(".") and name.endswith("rc"))
    )


MONTH: Final = 30 * DAY
NEWEST_PULLS: Final = 100
# Bounds the search for pull requests of people where bots open nearly all.
MOST_WITH_BOTS: Final = 1_000


class MergedPull(NamedTuple):
    """A merged pull request; `author` is None if the account was deleted."""

    number: int
    title: str
    author: str | None
    is_bot: bool
    created_at: int
    merged_at: int
    updated_at: int

    @property
    def hours(self) -> float:
        """Hours from opening to merging."""
        return (self.merged_at - self.created_at) / HOUR


def convert_to_milliseconds(moment: datetime) -> int:
    """Milliseconds since the epoch."""
    return round(moment.timestamp() * SECOND)


def format_timestamp(moment: int) -> str:
    """A time in ISO 8601, to the second, as code hosts expect it."""
    return datetime.fromtimestamp(moment // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_population_complete(
    seen: Iterable[MergedPull], last_updated: int, cutoff: int, *, bots: bool
) -> bool:
    """True if the pages so far, most recently updated first, hold the whole population.

    `last_updated` is the update time of the last pull request read. A merge updates a pull request,
    so none on a later page was merged after it. Without `bots`, reading may stop after
    `MOST_WITH_BOTS` pull requests and all of the last month.
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

    `seen` must be complete (`is_population_complete`) or hold every pull request. Without `bots`,
    merge times exclude pull requests of bots. Figures without any pull request are not applicable.
    """
    newest = sorted(seen, key=lambda pull: pull.merged_at, reverse=True)
    counted = [pull for pull in newest if bots or not pull.is_bot]
    month = [pull for pull in counted if pull.merged_at >= cutoff]
    population = counted[: max(NEWEST_PULLS, len(month))]
    latest: dict[str, Any]
    if newest:
        gone = Missing(Outcome.NOT_APPLICABLE, "the author's account is gone")
        latest = {"title": newest[0].title, "author": newest[0].author or gone}
    else:
        latest = dict.fromkeys(
            ("title", "author"), Missing(Outcome.NOT_APPLICABLE, "no pull request was merged")
        )
    return {
        "pullRequests": {"mergedLastMonth": sum(pull.merged_at >= cutoff for pull in newest)},
        "mergeTime": {
            **_make_merge_times(population, "Hours"),
            **_make_merge_times(month, "LastMonthHours"),
        },
        "latestMergedPR": latest,
    }


def compute_merged_percentage(merged: int | Missing, total: int | Missing) -> float | Missing:
    """The percentage of pull requests that were merged, from 0 to 100."""
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


Options = TypeVar("Options", bound="CodeHostOptions")
T = TypeVar("T")

# Headers for downloading a file.
ANYTHING: Final = {"accept": "*/*"}
# Becomes part of URLs.
Slug = Annotated[str, Meta(pattern=r"\A(?!\.{1,2}/)[\w.-]+/(?!\.{1,2}\Z)[\w.-]+\Z")]


class CodeHostOptions(InstanceOptions, frozen=True, kw_only=True):
    """Settings of a code host instance.

    `API` is the path of its API, `EXAMPLE` an example host. `FORM` and `PATTERN` describe names of
    repositories, which are in lower case unless the host `KEEPS_CASE`. `OWNER` is the word for the
    first part of a name.
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
        """The URL of the REST API, without a trailing slash."""
        return (self.api_url or f"https://{self.host}{self.API}").rstrip("/")

    @property
    def git(self) -> str:
        """The base URL of the host's repositories."""
        return self.rest.removesuffix(self.API)

    @property
    def origin(self) -> str:
        """Scheme and host of the API."""
        return url_origin(self.rest)

    @property
    def slug(self) -> str:
        """The slug annotation of this host; the name of an annotation can't have a port."""
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
        """The first two segments of the path; the rest is a branch and a folder."""
        return "/".join(place.path.split("/")[:2]).removesuffix(".git")

    def repository(self, path: str) -> str | Missing:
        """The name of the repository at this path, or the reason to skip it."""
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
        """The owners whose repositories are collected; empty means all."""
        return ()


class CodeHostApi(Generic[Options]):
    """API client of a code host, for one collection at the time `now`."""

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
    """Base of GraphQL types; names are in camel case, and unknown fields are ignored."""


class ConnectionPosition(GraphqlStruct):
    """End of a page of a GraphQL connection."""

    has_next_page: bool
    end_cursor: str | None


class NodePage(GraphqlStruct, Generic[T]):
    """Page of a connection, or several combined; hidden nodes are null."""

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
    """The groups of the shapes that code hosts fill: leaves, or one reason for a group.

    `merging` comes from `make_merge_figures`; `paths` are the paths of all files.
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
        "repository": paths if isinstance(paths, Missing) else make_file_facts(paths),
    }


def make_pull_request_leaves(
    total: int | Missing, merged: int | Missing, open_: int | Missing, last_month: Any
) -> Leaves:
    """The leaves of pullRequests; `last_month` is a number, or `merging`, which has it."""
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
    """The leaves about a CODEOWNERS file at one of `places`; `errors` counts its errors."""
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
