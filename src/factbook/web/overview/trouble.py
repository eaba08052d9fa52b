"""Sources in trouble: data sources of every type and importers, with the reason of each."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.clock import HOUR
from factbook.facts import health
from factbook.importers import status
from factbook.importers.status import ImporterStatus
from factbook.web.data_sources import list as source_list
from factbook.web.data_sources.table_rows import SourceRow
from factbook.web.site.formats import counted, segment
from factbook.web.site.page_context import PageContext

_SHOWN: Final = 10
_TOPICS: Final = {"sources": SOURCE_READ, "importers": CATALOG_READ}
_KINDS: Final = {"failed": "bad", "partial": "warn", "held": "warn"}


class SourceTrouble(NamedTuple):
    """A source in trouble: its type, its state in words with the kind of it, and the reason."""

    title: str
    path: str
    type: str
    words: str
    kind: str
    succeeded_at: int | None
    reason: str


class SourceStandings(NamedTuple):
    """The first sources in trouble, how many more there are, and how many bring facts.

    `topics` are those whose changes may bring or end trouble that the person may see.
    """

    troubled: list[SourceTrouble]
    more: int
    collected: int
    importers: int
    topics: list[str]


async def sources(visit: PageContext) -> SourceStandings:
    """The standing of all sources that the person may see."""
    rows = await source_list.source_rows(visit) if visit.may(SOURCE_READ) else []
    found = [_of_source(row, visit.now) for row in rows if row.doing.is_problem]
    importers: list[ImporterStatus] = []
    if visit.may(CATALOG_READ):
        known = await visit.state.importers.current()
        importers = await status.statuses(visit.state.database, known.values(), visit.now)
        found += [_unusable(*one) for one in sorted(visit.state.importers.problems.items())]
        found += _of_importers(importers, visit.now)
    found.sort(key=lambda one: (one.kind != "bad", one.title.casefold()))
    bring = sum(map(_brings_facts, rows))
    topics = [topic for topic, need in _TOPICS.items() if visit.may(need)]
    return SourceStandings(found[:_SHOWN], len(found[_SHOWN:]), bring, len(importers), topics)


def _brings_facts(row: SourceRow) -> bool:
    """Return true for a source that is collected by itself, or was pushed to."""
    if row.way == "read" or row.source.draft:
        return False
    return row.pushed_at is not None if row.way == "pushed" else row.source.cadence is not None


def _of_source(row: SourceRow, now: int) -> SourceTrouble:
    reason = row.problem
    if reason is None:
        state, reason = health.condition(row.source, row.health, now, pushed_at=row.pushed_at)
        # Since when it is down is shown beside.
        reason = (state == "down" and row.last and row.last.error) or reason
    return SourceTrouble(
        row.source.title,
        f"/data-sources/{segment(row.source.id)}",
        "pushed" if row.way == "pushed" else "integration" if row.is_builtin else "custom",
        row.doing.words,
        row.doing.kind,
        row.health.succeeded_at if row.health else row.pushed_at,
        reason,
    )


def _unusable(importer: str, problem: str) -> SourceTrouble:
    path = f"/imports/{segment(importer)}"
    return SourceTrouble(importer, path, "importer", "cannot be used", "bad", None, problem)


def _of_importers(found: Iterable[ImporterStatus], now: int) -> list[SourceTrouble]:
    return [trouble for one in found if (trouble := _of_importer(one, now)) is not None]


def _of_importer(one: ImporterStatus, now: int) -> SourceTrouble | None:
    """Trouble of an importer: that of its last run, also while the next one is under way."""
    word = one._replace(under_way=None).state
    kind, reason = _KINDS.get(word), one.last.error if one.last else ""
    if word == "held" and not reason:
        reason = f"{counted(one.held, 'removal waits', 'removals wait')} for a decision"
    is_idle = one.under_way is None and one.next_at is not None
    if kind is None and is_idle and (one.next_at or 0) < now - HOUR and one.last is not None:
        word, kind, reason = "late", "warn", "A run was due and did not begin"
    if kind is None:
        return None
    path = f"/imports/{segment(one.importer.id)}"
    return SourceTrouble(one.importer.title, path, "importer", word, kind, one.complete_at, reason)
