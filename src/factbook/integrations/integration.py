"""Interface of an integration: one configured instance of a vendor, as data and functions.

Annotations point to targets at the instance, such as a repository `owner/name`. Facts are named by
shape and path: `codehost.pullRequests.total`. The settings have a table of options for each
instance, from which the vendor makes an integration.
"""

import asyncio
import re
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, get_type_hints
from urllib.parse import urlsplit

import msgspec

from factbook.clock import Clock, now
from factbook.errors import ConfigurationError
from factbook.facts import schema
from factbook.facts.datasource import DataSource, Handler, Lifecycle
from factbook.facts.schema import SHAPES, Fact, Shape
from factbook.outbound.cache import Memory, exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.client import ANONYMOUS, Credential, HttpClient
from factbook.outbound.outcomes import REPEATED, Answer, Missing, Outcome, report_too_many
from factbook.settings import option_tables

T = TypeVar("T")
V = TypeVar("V")

Leaves = dict[str, Any]  # values of a group by fact name

EVERYTHING: Final = ("",)


@dataclass(frozen=True, kw_only=True)
class Probe:
    """Request that tests a permission, at the integration's host or at the base URL `further`.

    `right` is the permission in the vendor's words. `facts` are the places, such as
    `incident.serviceInfo`, that stay unknown without it; "" means all. A `json` body is sent with
    POST, which also only reads. A status in `also` proves the permission, too.
    """

    right: str
    target: str
    facts: tuple[str, ...] = EVERYTHING
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    json: Any = None
    budget: str = ""
    further: str = ""
    also: Sequence[int] = ()


class CollectionSubject(NamedTuple):
    """Entity to collect facts for; `entity` is its document from the catalog."""

    entity_id: int
    ref: str
    entity: Mapping[str, Any]


@dataclass
class Collected:
    """Result of one collection for one target.

    `values` are keyed by fact. `missing` maps a fact, a group (`codehost.issues`), a shape
    (`codehost`) or "" for everything to the reason that values are missing; the longest match
    counts. A fact is in `values` or covered by `missing`, never both.
    """

    values: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, Missing] = field(default_factory=dict)

    @classmethod
    def of(cls, groups: Mapping[str, Mapping[str, Any] | Missing]) -> "Collected":
        """Combine groups of facts, keyed by place (`codehost.issues`).

        A group maps each fact to its value or the reason that it is missing. A single `Missing`
        covers the whole group.
        """
        found = cls()
        for place, leaves in groups.items():
            if isinstance(leaves, Missing):
                found.missing[place] = leaves
                continue
            for name, value in leaves.items():
                kept = found.missing if isinstance(value, Missing) else found.values
                kept[f"{place}.{name}"] = value
        return found

    @property
    def reasons(self) -> dict[str, str]:
        """`missing` in its stored form."""
        return {place: missing.reason for place, missing in self.missing.items()}

    @property
    def passing(self) -> frozenset[str]:
        """The places in `missing` whose last value is kept for a while."""
        return frozenset(place for place, missing in self.missing.items() if missing.passing)


Authorize = Callable[[HttpClient], Credential]
Collect = Callable[[Sequence[str], HttpClient, Memory, int], Awaitable[dict[str, Collected]]]
Read = Callable[[str, str, HttpClient, Memory], Awaitable[Answer]]


# Base URL of an integration that makes no calls; the name never resolves.
NOWHERE: Final = "https://nowhere.invalid"


def report_no_annotation(detail: str) -> Missing:
    """The reason if no annotation points to this instance."""
    return Missing(Outcome.NO_ANNOTATION, detail)


def report_bad_annotation(detail: str) -> Missing:
    """The reason if an annotation has the wrong form."""
    return Missing(Outcome.BAD_ANNOTATION, detail)


def get_annotations(entity: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entity's annotations; empty if they are not a mapping."""
    found = (entity.get("metadata") or {}).get("annotations")
    return found if isinstance(found, Mapping) else {}


def sum_counts(counts: Iterable[int | Missing]) -> int | Missing:
    """The sum, or the reason that one of the counts is missing."""
    found = 0
    for count in counts:
        if isinstance(count, Missing):
            return count
        found += count
    return found


def split_targets(targets: Sequence[str], size: int | None = None) -> list[list[str]]:
    """The distinct targets in batches of `size`, or in a single batch without it."""
    distinct = list(dict.fromkeys(targets))
    step = size or len(distinct) or 1
    return [distinct[i : i + step] for i in range(0, len(distinct), step)]


@dataclass(frozen=True, kw_only=True)
class Integration:
    """One configured instance of a vendor, with one credential.

    `fills` lists the shapes (`codehost`) and members of shapes (`security.dependencyAlerts`) whose
    facts (`list_shape_facts`) are in `source.schema`.

    Batches with the same `credential` share a queue; by default each source has its own. `at_once`
    batches of a queue run at a time, over all processes. One process runs at most `calls_at_once`
    calls to `base_url` at a time, but no fewer than `at_once`; `pace` limits calls per minute by
    budget. `authorize` makes the credential from an anonymous client, through which an app can
    fetch tokens. `further` maps base URLs of other hosts to such functions; `collect` finds their
    clients in the `further` of its client. `edition` changes when the credential changes while the
    service runs.

    `target` returns the target that an entity's annotations name at this instance, or the reason
    that there is none; it never names another host. `batches` groups targets that are requested
    together, by default all. `collect` handles one batch, given the time in milliseconds, and
    returns a result for every target. Problems of single targets and unusual answers never raise.

    `read`, if targets are repositories, fetches a file of the default branch by its path, as the
    body of the answer. `probes` test the permissions that don't depend on the target.
    """

    source: DataSource
    fills: tuple[str, ...] = ()
    credential: str = ""
    edition: str = ""
    authorize: Authorize = field(default=lambda _: ANONYMOUS, repr=False)
    base_url: str = NOWHERE
    further: Mapping[str, Authorize] = field(default_factory=dict, repr=False)
    at_once: int = 1
    calls_at_once: int = 1
    pace: Mapping[str, int] = field(default_factory=dict)
    target: Callable[[Mapping[str, Any]], str | Missing]
    batches: Callable[[Sequence[str]], list[list[str]]] = split_targets
    collect: Collect
    read: Read | None = None
    probes: tuple[Probe, ...] = ()

    def __post_init__(self) -> None:
        if not self.credential:
            object.__setattr__(self, "credential", self.source.id)


async def run_for_each(
    targets: Iterable[T], work: Callable[[T], Coroutine[Any, Any, V]]
) -> dict[T, V]:
    """Run the work for all targets concurrently; returns the results by target."""
    async with asyncio.TaskGroup() as group:
        tasks = {target: group.create_task(work(target)) for target in targets}
    return {target: task.result() for target, task in tasks.items()}


async def get_stored_entry(memory: Memory, key: str, type_: type[T]) -> T | None:
    """The entry stored by `store_entry`; None if there is none or this version can't decode it."""
    stored = await memory.get(key)
    if stored is None:
        return None
    try:
        return msgspec.json.decode(zlib.decompress(stored), type=type_)
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError):
        return None


async def store_entry(memory: Memory, key: str, entry: object) -> None:
    """Store a compressed entry for later collections."""
    await memory.put(key, zlib.compress(msgspec.json.encode(entry), level=1))


def list_shape_facts(shape: Shape, *members: str) -> tuple[Fact, ...]:
    """The facts of a shape, or of some members, with the shape's name as prefix."""
    return tuple(
        replace(fact, name=f"{shape.name}.{fact.name}")
        for fact in schema.shape_facts(shape)
        if not members or fact.name.partition(".")[0] in members
    )


_CONFIDENTIAL: Final = re.compile(r"secret|password|token|key", re.IGNORECASE)
_SHAPES: Final = {shape.name: shape for shape in SHAPES}

Options = TypeVar("Options", bound="InstanceOptions")


class InstanceOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings table of one instance of a vendor.

    `about` describes each field; the description of a secret begins with `Secret.`. The repr leaves
    out fields without a description, and fields whose name or description suggests a secret.
    """

    def __post_init__(self) -> None:
        for problem in self.problems():
            raise ConfigurationError(problem)

    def problems(self) -> Iterable[str]:
        """The mistakes in the table; the first is reported. Messages never contain a value."""
        return ()

    def __repr__(self) -> str:
        """Without the secrets."""
        hints = get_type_hints(type(self), include_extras=True)
        fields = []
        for name in self.__struct_fields__:
            metadata = getattr(hints[name], "__metadata__", ())
            texts = [text for meta in metadata if (text := getattr(meta, "description", None))]
            if texts and not any(map(_CONFIDENTIAL.search, (name, *texts))):
                fields.append(f"{name}={getattr(self, name)!r}")
        return f"{type(self).__name__}({', '.join(fields)})"


class Configure(Protocol):
    """Makes an integration from the name and the values of its settings table."""

    def __call__(self, name: str, values: Mapping[str, Any], *, clock: Clock = now) -> Integration:
        """Make the integration. Raises ConfigurationError, whose text never contains a value."""
        ...


@dataclass(frozen=True, kw_only=True)
class Vendor:
    """Type of integration, exported by its folder as INTEGRATION.

    `options` is the type of its settings table; `configured` makes an integration from such a
    table.
    """

    id: str
    title: str
    options: type[msgspec.Struct]
    facts: tuple[Fact, ...]
    fills: tuple[str, ...]
    configured: Configure


@dataclass(frozen=True, kw_only=True)
class Instance(Generic[Options]):
    """Parsed settings table `[integrations.<vendor>.<name>]`.

    `id` and `title` belong to its data source: `github` if the name is `default`, otherwise
    `github-<name>`. `facts` are the vendor's.
    """

    vendor: str
    id: str
    title: str
    facts: tuple[Fact, ...]
    options: Options
    clock: Clock

    def source(
        self, description: str, annotations: Iterable[str], *, minutes: int = 30
    ) -> DataSource:
        """The data source, for entities that have one of the annotations.

        Runs every six hours; results are kept for 90 days. `minutes` is the time limit of a run.
        """
        return DataSource(
            id=self.id,
            title=self.title,
            description=description,
            cadence="0 */6 * * *",
            lifecycle=Lifecycle(time_to_live={"days": 90}),
            handler=Handler("builtin", self.id, builtin_id=self.vendor),
            timeout={"minutes": minutes},
            entity_filter=[
                {f"metadata.annotations.{key}": {"exists": True}} for key in annotations
            ],
            schema=self.facts,
        )

    def credential(
        self, headers: Mapping[str, str], of: str = ""
    ) -> Callable[[HttpClient], Credential]:
        """A function that makes a credential with fixed headers."""
        fixed = Credential.fixed(f"{self.id} {of}" if of else self.id, headers)
        return lambda _: fixed


def make_vendor(
    id_: str,
    title: str,
    options: type[Options],
    configured: Callable[[Instance[Options]], Integration],
    fills: tuple[str, ...] = (),
    *,
    facts: tuple[Fact, ...] = (),
) -> Vendor:
    """A vendor whose integrations come from `configured`, which needn't set `fills`.

    Its facts are those of the shapes (`codehost`) or members (`security.dependencyAlerts`) in
    `fills`, plus `facts` of its own.
    """
    filled: list[Fact] = []
    for place in fills:
        shape, _, member = place.partition(".")
        filled += list_shape_facts(_SHAPES[shape], *filter(None, (member,)))
    all_facts = (*filled, *facts)

    def configure(name: str, values: Mapping[str, Any], *, clock: Clock = now) -> Integration:
        instance = Instance(
            vendor=id_,
            id=option_tables.source_id(id_, name),
            title=option_tables.instance_title(title, name),
            facts=all_facts,
            options=option_tables.read_options(id_, name, values, options),
            clock=clock,
        )
        return replace(configured(instance), fills=fills)

    return Vendor(
        id=id_, title=title, options=options, facts=all_facts, fills=fills, configured=configure
    )


class Identified(Protocol):
    """Row of a list, with a unique id."""

    id: Any


Row = TypeVar("Row", bound=Identified)
Value = TypeVar("Value")


async def gather_or_cancel(*readings: Coroutine[Any, Any, Value]) -> list[Value]:
    """Run readings concurrently and return their results in order.

    If one fails, the others are cancelled before its error is raised.
    """
    tasks = [asyncio.ensure_future(reading) for reading in readings]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


@dataclass(frozen=True)
class NumberedPages(Generic[Row, Value]):
    """Reader of lists with numbered pages, for one collection.

    A page with fewer than `size` rows is the last one. A list of more than `most` pages is too
    large and not read again for days; the reason names the `vendor`. `value` picks the part of a
    row to keep.
    """

    memory: Memory
    now: int
    vendor: str
    size: int
    most: int
    value: Callable[[Row], Value]

    async def rows(
        self, name: str, page: Callable[[int], Awaitable[Sequence[Row] | Missing]]
    ) -> list[Value] | Missing:
        """The value of every row of a list, or the reason that it is incomplete.

        `page` returns the rows of a page, from page 0. A row that moves to a later page during
        reading counts once. A page without new rows means that the host repeats pages.
        """
        most = self.size * self.most
        too_large = report_too_many(most, f"rows in one listing of {self.vendor}")
        if await exceeds_noted_limit(self.memory, name, most, self.now):
            return too_large
        found: dict[Any, Value] = {}
        for number in range(self.most):
            rows = await page(number)
            if isinstance(rows, Missing):
                return rows
            before = len(found)
            found.update({row.id: self.value(row) for row in rows})
            if len(rows) < self.size:
                return list(found.values())
            if len(found) == before:
                return REPEATED
        await note_exceeded_limit(self.memory, name, most, self.now)
        return too_large


SOURCE_LOCATION: Final = "backstage.io/source-location"

# Git's own short syntax.
_SHORT: Final = re.compile(r"git@([^/:@\s]+):([^:\s]+)", re.ASCII)
_SCHEMES: Final = ("https", "http", "ssh")


class SourceLocation(NamedTuple):
    """Parts of a URL; `host` is in lower case with its port, `path` has no outer slashes."""

    scheme: str
    host: str
    path: str


def find_location(entity: Mapping[str, Any]) -> SourceLocation | None:
    """The source location, if it is a web address."""
    text = get_annotations(entity).get(SOURCE_LOCATION)
    if isinstance(text, str) and text.startswith(("url:https://", "url:http://")):
        return parse_source_location(text.removeprefix("url:"))
    return None


def resolve_slug(text: str, host: str) -> SourceLocation | None:
    """The location that a slug names: `acme/x`, or the URL of a repository, with or without `.git`.

    A slug that is not a URL has no scheme and refers to this host. None for a URL on another
    host, or one that contains a credential.
    """
    text = text.strip()
    short = _SHORT.fullmatch(text)
    if short:
        place: SourceLocation | None = SourceLocation("ssh", short[1].lower(), short[2].strip("/"))
    elif "://" in text:
        place = parse_source_location(text)
    elif text.lower().startswith(f"{host}/"):
        place = parse_source_location(f"https://{text}")
    else:
        return SourceLocation("", host, text.rstrip("/").removesuffix(".git"))
    if place is None or place.scheme not in _SCHEMES:
        return None
    at = place.host.removeprefix("git@") if place.scheme == "ssh" else place.host
    return place._replace(host=at) if at == host else None


def parse_source_location(url: str) -> SourceLocation | None:
    """The location of a URL; None if it is not a URL. A query and a fragment are dropped."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return SourceLocation(parts.scheme, parts.netloc.lower(), parts.path.strip("/"))
