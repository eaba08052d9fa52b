"""Interface of an integration: one configured instance of a vendor, as data and functions.

Targets are the things at that instance that annotations point to, e.g. a repository as
`owner/name`. Facts are named by shape and path: `codehost.pullRequests.total`.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from factbook.facts import shapes
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from factbook.facts.shapes import Shape
from factbook.outbound.cache import Memory
from factbook.outbound.client import ANONYMOUS, Credential, HttpClient
from factbook.outbound.outcomes import Answer, Missing, Outcome

T = TypeVar("T")
V = TypeVar("V")

Leaves = dict[str, Any]  # of a group, by the names of its facts

EVERYTHING: Final = ("",)


@dataclass(frozen=True, kw_only=True)
class Probe:
    """One request to the host of an integration, or to a further one (`further` is its base URL).

    `right` is the permission that it tests, in the vendor's words. `facts` are the places, such as
    `incident.serviceInfo`, that stay unknown without it; "" is everything. A `json` body is sent by
    POST and only reads, too. An answer with a status in `also` proves the right as well.
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
    """One entity to collect facts for; `entity` is the document that the catalog shows."""

    entity_id: int
    ref: str
    entity: Mapping[str, Any]


@dataclass
class Collected:
    """Result of one collection for one target.

    `values` are by fact. `missing` gives the reason for a missing value: by fact, by group
    (`codehost.issues`), by shape (`codehost`), or "" for everything; the longest match counts. A
    fact is in `values` or is covered by `missing`, never both.
    """

    values: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, Missing] = field(default_factory=dict)

    @classmethod
    def of(cls, groups: Mapping[str, Mapping[str, Any] | Missing]) -> "Collected":
        """The result of several groups of facts, by place (`codehost.issues`).

        A group maps the name of each fact to its value or the reason that it is missing; a single
        `Missing` stands for the whole group.
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
        """`missing` as it is stored."""
        return {place: missing.reason for place, missing in self.missing.items()}

    @property
    def passing(self) -> frozenset[str]:
        """The places in `missing` whose last value is kept for a while."""
        return frozenset(place for place, missing in self.missing.items() if missing.passing)


Authorize = Callable[[HttpClient], Credential]
Collect = Callable[[Sequence[str], HttpClient, Memory, int], Awaitable[dict[str, Collected]]]
Read = Callable[[str, str, HttpClient, Memory], Awaitable[Answer]]


# The base URL of an integration that makes no calls by itself; a name that never exists.
NOWHERE: Final = "https://nowhere.invalid"


def _anonymous(_: HttpClient) -> Credential:
    return ANONYMOUS


def no_annotation(detail: str) -> Missing:
    """The reason where no annotation names something at this instance."""
    return Missing(Outcome.NO_ANNOTATION, detail)


def bad_annotation(detail: str) -> Missing:
    """The reason for an annotation of another form."""
    return Missing(Outcome.BAD_ANNOTATION, detail)


def annotations(entity: Mapping[str, Any]) -> Mapping[str, Any]:
    """The entity's annotations; an empty mapping if they are not one."""
    found = (entity.get("metadata") or {}).get("annotations")
    return found if isinstance(found, Mapping) else {}


def total(counts: Iterable[int | Missing]) -> int | Missing:
    """The sum, or the reason that one of the counts is missing."""
    found = 0
    for count in counts:
        if isinstance(count, Missing):
            return count
        found += count
    return found


def portions(targets: Sequence[str], size: int | None = None) -> list[list[str]]:
    """The targets, each once, in portions of `size`, or all in one without it."""
    distinct = list(dict.fromkeys(targets))
    step = size or len(distinct) or 1
    return [distinct[i : i + step] for i in range(0, len(distinct), step)]


@dataclass(frozen=True, kw_only=True)
class Integration:
    """One configured instance of a vendor, with one credential.

    `source.schema` holds the facts of the shapes it fills (`facts_of`). `fills` names shapes
    (`codehost`) and members of shapes (`security.dependencyAlerts`).

    `credential` names the queue for the batches of one credential; without it each source has its
    own. `at_once` of them run at the same time over all processes. In one process at most
    `calls_at_once` calls to `base_url`, but never fewer than `at_once`, are under way, and `pace`
    limits the calls begun in a minute, by budget. `authorize` makes the credential from an
    anonymous client, through which an app may fetch its tokens.
    `further` holds the base URLs of other hosts that it calls, each with a function that makes the
    credential for it; `collect` finds a client for each in the `further` of its own client.
    `edition` changes when the credential is changed while the service runs.

    `target` returns the target that an entity's annotations name at this instance, or the reason
    that there is none; it never names another host. `batches` groups targets that are requested
    together: all of them, unless it is given. `collect` handles one batch at a time given in
    milliseconds and returns a result for every target in it: it raises nothing that concerns only
    some of them, and nothing for an answer that a vendor may give.
    `read`, where targets are repositories, fetches one file of the default branch by its path: the
    file is the body of the answer. `probes` test the credential's permissions, as far as these do
    not depend on the target.
    """

    source: DataSource
    fills: tuple[str, ...] = ()
    credential: str = ""
    edition: str = ""
    authorize: Authorize = field(default=_anonymous, repr=False)
    base_url: str = NOWHERE
    further: Mapping[str, Authorize] = field(default_factory=dict, repr=False)
    at_once: int = 1
    calls_at_once: int = 1
    pace: Mapping[str, int] = field(default_factory=dict)
    target: Callable[[Mapping[str, Any]], str | Missing]
    batches: Callable[[Sequence[str]], list[list[str]]] = portions
    collect: Collect
    read: Read | None = None
    probes: tuple[Probe, ...] = ()

    def __post_init__(self) -> None:
        if not self.credential:
            object.__setattr__(self, "credential", self.source.id)


async def each(targets: Iterable[T], work: Callable[[T], Coroutine[Any, Any, V]]) -> dict[T, V]:
    """The result of the work on each of the targets, which is done at the same time."""
    async with asyncio.TaskGroup() as group:
        tasks = {target: group.create_task(work(target)) for target in targets}
    return {target: task.result() for target, task in tasks.items()}


async def stored_entry(memory: Memory, key: str, type_: type[T]) -> T | None:
    """The entry stored by `store_entry`; None without one that this version can decode."""
    stored = await memory.get(key)
    if stored is None:
        return None
    try:
        return msgspec.json.decode(zlib.decompress(stored), type=type_)
    except (zlib.error, msgspec.DecodeError, UnicodeDecodeError):
        return None


async def store_entry(memory: Memory, key: str, entry: object) -> None:
    """Store an entry that later collections read, compressed."""
    await memory.put(key, zlib.compress(msgspec.json.encode(entry), level=1))


def facts_of(shape: Shape, *members: str) -> tuple[Fact, ...]:
    """The facts of a shape, or of some of its members, under the names that a source gives them."""
    return tuple(
        replace(fact, name=f"{shape.name}.{fact.name}")
        for fact in shapes.shape_facts(shape)
        if not members or fact.name.partition(".")[0] in members
    )
