"""What an integration is: one configured instance of a vendor, described as data and functions.

Targets are what annotations point to at that instance, e.g. `owner/name` of a repository. Facts are
named by shape and path: `codehost.pullRequests.total`.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from factbook.clock import Clock, now
from factbook.facts import shapes
from factbook.facts.datasource import DataSource, Handler, Lifecycle
from factbook.facts.schema import Fact
from factbook.facts.shapes import Shape
from factbook.integrations.probes import Probe
from factbook.outbound import ANONYMOUS, Answer, Credential, HttpClient, Memory
from factbook.outbound.outcomes import Missing


class CollectionSubject(NamedTuple):
    """One entity to collect for; `entity` is as the catalog shows it."""

    entity_id: int
    ref: str
    entity: Mapping[str, Any]


@dataclass
class Collected:
    """What one collection brought for one target.

    `values` are by fact. `missing` says why there is no value: by fact, by group
    (`codehost.issues`), by shape (`codehost`), or "" for everything; the longest one counts. A fact
    stands in `values` or is covered by `missing`, never both.
    """

    values: dict[str, Any] = field(default_factory=dict)
    missing: dict[str, Missing] = field(default_factory=dict)

    @classmethod
    def of(cls, groups: Mapping[str, Mapping[str, Any] | Missing]) -> "Collected":
        """What groups of facts come to, by place (`codehost.issues`).

        A group is its facts by name, each a value or why it is missing, or why all of it is.
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
        """The places in `missing` for which the last value is kept for a while."""
        return frozenset(place for place, missing in self.missing.items() if missing.passing)


Authorize = Callable[[HttpClient], Credential]
Collect = Callable[[Sequence[str], HttpClient, Memory, int], Awaitable[dict[str, Collected]]]
Read = Callable[[str, str, HttpClient, Memory], Awaitable[Answer]]


@dataclass(frozen=True, kw_only=True)
class Integration:
    """One configured instance of a vendor, with one credential.

    `source.schema` holds the facts of the shapes it fills (`facts_of`). `fills` names shapes
    (`codehost`) and members of shapes (`security.dependencyAlerts`).

    `credential` names the queue in which the batches of one credential wait, `at_once` of them
    under way, wherever they are worked on. Of the calls that these make to `base_url`,
    `calls_at_once`, but never fewer than `at_once`, are under way in one process. `authorize` makes
    the credential: it is given a client without one, with which an app may get itself tokens.
    `further` are base URLs of other hosts that it asks too, each with what makes the credential for
    that one: a client for each stands in the `further` of the client that `collect` is given.
    `edition` is another text when the credential was changed while the service runs.

    `target` says what an entity's annotations point to at this instance, or why to nothing; it
    never names another host. `batches` says which targets are asked for together. `collect` asks
    for one batch at a time given in milliseconds, and answers for every target of it: it raises
    nothing that concerns only some of them, and nothing for an answer that a vendor may give.
    `read`, where targets are repositories, asks for one file of the default branch, by its path:
    the file is the body of the answer. `probes` show what the credential may read, as far as that
    does not depend on the target.
    """

    source: DataSource
    fills: tuple[str, ...]
    credential: str
    edition: str = ""
    authorize: Authorize = field(repr=False)
    base_url: str
    further: Mapping[str, Authorize] = field(default_factory=dict, repr=False)
    at_once: int = 1
    calls_at_once: int = 1
    target: Callable[[Mapping[str, Any]], str | Missing]
    batches: Callable[[Sequence[str]], list[list[str]]]
    collect: Collect
    read: Read | None = None
    probes: tuple[Probe, ...] = ()


def source_of(
    vendor: str,
    id_: str,
    title: str,
    description: str,
    annotations: Iterable[str],
    facts: tuple[Fact, ...],
    *,
    minutes: int = 30,
) -> DataSource:
    """The data source of one instance of a vendor: for entities that have one of the annotations.

    Every six hours, kept for 90 days; `minutes` is the longest that a run may take.
    """
    return DataSource(
        id=id_,
        title=title,
        description=description,
        cadence="0 */6 * * *",
        lifecycle=Lifecycle(time_to_live={"days": 90}),
        handler=Handler("builtin", id_, builtin_id=vendor),
        timeout={"minutes": minutes},
        entity_filter=[{f"metadata.annotations.{key}": {"exists": True}} for key in annotations],
        schema=facts,
    )


# The base URL of an integration that asks no host by itself; a name that never exists.
NOWHERE: Final = "https://nowhere.invalid"


def asking_nobody(
    source: DataSource,
    *,
    queue: str,
    target: Callable[[Mapping[str, Any]], str | Missing],
    batches: Callable[[Sequence[str]], list[list[str]]],
    collect: Collect,
    at_once: int = 1,
) -> Integration:
    """An integration that is told what it needs in another way than by its client."""
    return Integration(
        source=source,
        fills=(),
        credential=queue,
        authorize=lambda _: ANONYMOUS,
        base_url=NOWHERE,
        at_once=at_once,
        target=target,
        batches=batches,
        collect=collect,
    )


class Configure(Protocol):
    """Makes an integration of the name and the values of a table of the settings."""

    def __call__(self, name: str, values: Mapping[str, Any], *, clock: Clock = now) -> Integration:
        """The integration; raises ConfigurationError, which never says a value."""
        ...


@dataclass(frozen=True, kw_only=True)
class Vendor:
    """A kind of integration: what its folder exports as INTEGRATION.

    `options` is the type of its table in the settings, `configured` reads one.
    """

    id: str
    title: str
    options: type[msgspec.Struct]
    facts: tuple[Fact, ...]
    fills: tuple[str, ...]
    configured: Configure


def portions(targets: Sequence[str], size: int | None = None) -> list[list[str]]:
    """The targets, each once, in portions of this size; without one all together."""
    distinct = list(dict.fromkeys(targets))
    step = size or len(distinct) or 1
    return [distinct[i : i + step] for i in range(0, len(distinct), step)]


def facts_of(shape: Shape, *members: str) -> tuple[Fact, ...]:
    """The facts of a shape, or of some of its members, as a source names them."""
    return tuple(
        replace(fact, name=f"{shape.name}.{fact.name}")
        for fact in shapes.facts(shape)
        if not members or fact.name.partition(".")[0] in members
    )
