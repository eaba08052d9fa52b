"""Figures of an entity that matter most, each with its change over a week."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.clock import DAY
from factbook.facts import store
from factbook.facts.datasource import DataSource
from factbook.facts.merge import Latest
from factbook.facts.schema import TYPES, Fact
from factbook.storage import Database
from factbook.web.charts import scales
from factbook.web.entity import fact_values
from factbook.web.entity.fact_values import Value
from factbook.web.site import fact_titles
from factbook.web.site.formats import segment

MOST: Final = 8
_WEEK: Final = 7 * DAY
# Of a source that fills no shape, so that each of several has a place.
_OF_A_SOURCE: Final = 3
_LONGEST_BEFORE: Final = 300  # characters of a value in JSON
_FIGURES: Final = frozenset({"integer", "float", "boolean"})

MINUS: Final = "\N{MINUS SIGN}"

# What people look for first among the facts of each shape, in the order in which it is shown.
DEFAULTS: Final = (
    "incident.incidentMetrics.monthlyIncidents",
    "security.scannerIssues.critical",
    "security.scannerIssues.high",
    "security.dependencyAlerts.open",
    "codehost.pullRequests.open",
    "codehost.mergeTime.avgLastMonthHours",
    "incident.incidentMetrics.upTimePercentage",
    "incident.incidentMetrics.meanTimeToResolve",
    "codehost.branchProtection.enabled",
    "codehost.issues.open",
    "observability.sloCount",
    "observability.monitorCount",
    "repository.totalFiles",
)
_SHAPED: Final = tuple({f"{name.partition('.')[0]}." for name in DEFAULTS})


class KeyFigure(NamedTuple):
    """A figure with its title, its page, and its change in words, "" if nothing tells it."""

    title: str
    source: str
    path: str
    value: Value
    change: str


class _Chosen(NamedTuple):
    source: DataSource
    fact: Fact
    value: Any


async def key_figures(
    database: Database,
    entity_id: int,
    path: str,
    sources: Sequence[DataSource],
    latest: Mapping[str, Latest],
    wanted: Sequence[str],
    now: int,
) -> list[KeyFigure]:
    """The figures of the entity at a path that are known, up to eight.

    `wanted` are facts, or facts with `SOURCE:` before them; empty for those that fit the sources.
    """
    known = [_Chosen(source, fact, value) for source, fact, value in _known(sources, latest)]
    chosen = list(_named(known, wanted) if wanted else _fitting(known))[:MOST]
    ids = {one.source.id for one in chosen}
    before = await store.past_for_entity(database, entity_id, ids, now - _WEEK)
    return [_figure(one, path, before.get(one.source.id, {})) for one in chosen]


def _known(
    sources: Iterable[DataSource], latest: Mapping[str, Latest]
) -> Iterator[tuple[DataSource, Fact, Any]]:
    for source in sources:
        facts = latest[source.id].facts if source.id in latest else {}
        for fact in source.schema:
            if fact.name in facts:
                yield source, fact, facts[fact.name]


def _named(known: Sequence[_Chosen], wanted: Iterable[str]) -> Iterator[_Chosen]:
    for name in wanted:
        for one in known:
            if name in (one.fact.name, f"{one.source.id}:{one.fact.name}"):
                yield one
                break


def _fitting(known: Sequence[_Chosen]) -> Iterator[_Chosen]:
    """Figures of the shapes, and between them some of the sources that fill none."""
    shaped = _named(known, DEFAULTS)
    counts: dict[str, int] = {}
    others = list[_Chosen]()
    for one in known:
        is_own = not one.fact.name.startswith(_SHAPED) and one.fact.type in _FIGURES
        if is_own and counts.setdefault(one.source.id, 0) < _OF_A_SOURCE:
            counts[one.source.id] += 1
            others.append(one)
    first = list(shaped)
    room = max(MOST - len(others), MOST // 2)
    yield from first[:room]
    yield from others
    yield from first[room:]


def _figure(one: _Chosen, path: str, before: Mapping[str, msgspec.Raw]) -> KeyFigure:
    source, fact, value = one
    return KeyFigure(
        fact_titles.title(fact),
        source.title,
        f"{path}/facts/{segment(source.id)}/{segment(fact.name)}",
        fact_values.shown(fact, value),
        _change(fact, value, before.get(fact.name)),
    )


def _change(fact: Fact, value: Any, raw: msgspec.Raw | None) -> str:
    """The change of a value since that of a week before."""
    if raw is None or len(bytes(raw)) > _LONGEST_BEFORE:
        return ""
    before = msgspec.json.decode(raw)
    if not TYPES[fact.type].holds(before):
        return ""
    if before == value:
        return "same as a week ago"
    if fact.type not in {"integer", "float"}:
        return f"a week ago: {fact_values.in_words(fact, before)}"
    new, old = scales.finite(value), scales.finite(before)
    if new is None or old is None:
        return ""
    amount = scales.quantity(abs(new - old), fact_values.unit_of(fact))
    return f"{'+' if new > old else MINUS}{amount} in a week"
