"""Page of all data sources and their states, problems first."""

from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import urlencode

from factbook.auth.permissions import SOURCE_READ, SOURCE_WRITE
from factbook.facts import store
from factbook.http.requests import Reply
from factbook.integrations.vendors import VENDORS
from factbook.scheduling import runs
from factbook.web.data_sources import source_labels, table_rows
from factbook.web.data_sources.table_rows import SourceRow
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

PATH: Final = "/data-sources"
_PAGE: Final = 50
_LARGEST_PAGE: Final = 10_000

_SHOWN: Final = (
    ("", "All"),
    ("problems", "With problems"),
    ("builtin", "Built-in"),
    ("custom", "Custom"),
)


class _Counts(NamedTuple):
    all: int
    builtin: int
    problems: int
    running: int
    drafts: int


async def listed(visit: PageContext) -> Reply:
    """Page of every data source and its state."""
    rows = await source_rows(visit)
    query, shown = visit.query("q"), visit.query("show")
    found = [row for row in rows if _is_meant(row, query.casefold(), shown)]
    number = _number(visit.query("page", "1"))
    page = found[(number - 1) * _PAGE : number * _PAGE]
    asked = {"q": query, "show": shown}
    return visit.page(
        "data-sources.html",
        rows=page,
        counts=_counts(rows),
        found=len(found),
        first=(number - 1) * _PAGE + 1,
        before=_address(asked, number - 1) if number > 1 else None,
        after=_address(asked, number + 1) if number * _PAGE < len(found) else None,
        query=query,
        show=shown if shown in dict(_SHOWN) else "",
        choices=_SHOWN,
        vendors=_not_configured(rows),
        collects=any(row.way == "collected" and row.is_builtin for row in rows),
        may_write=visit.may(SOURCE_WRITE) or visit.may_own(SOURCE_WRITE),
        cadence=source_labels.cadence,
        bar=table_rows.bar,
        figures=table_rows.figures,
    )


async def source_rows(visit: PageContext) -> list[SourceRow]:
    """Every data source, problems first."""
    state, now = visit.state, visit.now
    known = await state.registry.latest()
    health = await runs.fetch_health(state.database)
    times = await store.find_last_written(state.database, known.pushed)
    ids = dict.fromkeys([*known.sources, *known.problems])
    rows = [table_rows.row(known, id_, health.get(id_), times.get(id_), now) for id_ in ids]
    return sorted(rows, key=lambda row: (row.doing.rank, row.source.title.casefold()))


def _is_meant(row: SourceRow, text: str, shown: str) -> bool:
    if text not in row.source.id.casefold() and text not in row.source.title.casefold():
        return False
    match shown:
        case "problems":
            return row.doing.is_problem
        case "builtin" | "custom":
            return row.is_builtin is (shown == "builtin")
    return True


def _counts(rows: Sequence[SourceRow]) -> _Counts:
    return _Counts(
        all=len(rows),
        builtin=sum(row.is_builtin for row in rows),
        problems=sum(row.doing.is_problem for row in rows),
        running=sum(row.running is not None for row in rows),
        drafts=sum(row.source.draft for row in rows),
    )


def _not_configured(rows: Sequence[SourceRow]) -> list[object]:
    handlers = [row.source.handler for row in rows]
    configured = {handler.builtin_id for handler in handlers if handler}
    return [vendor for vendor in VENDORS if vendor.id not in configured]


def _number(text: str) -> int:
    is_number = text.isascii() and text.isdigit() and len(text) < len(str(_LARGEST_PAGE))
    return max(1, int(text)) if is_number else 1


def _address(asked: dict[str, str], number: int) -> str:
    given = {name: value for name, value in asked.items() if value}
    return f"{PATH}?{urlencode({**given, 'page': number})}"


DATA_SOURCES: Sequence[PageRoute] = (PageRoute("GET", PATH, listed, (SOURCE_READ,)),)
