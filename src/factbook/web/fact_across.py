"""Page for one fact across the catalog: distribution, groups, and entities with values."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, cast

from factbook.auth.permissions import CATALOG_READ, SOURCE_READ
from factbook.checks.results import result_queries
from factbook.clock import iso
from factbook.datasources import fact_columns
from factbook.errors import InputError
from factbook.facts import across
from factbook.facts.across import ValueQuery
from factbook.facts.distribution import (
    LONGEST_SHOWN_TEXT,
    Bin,
    Distribution,
    GroupBy,
    GroupFigures,
)
from factbook.facts.schema import Fact
from factbook.http.csv_lines import CONTENT_TYPE, make_attachment_headers, stream_value_lines
from factbook.http.requests import Reply
from factbook.web import charts, formats
from factbook.web.charts import Column, draw_histogram
from factbook.web.formats import Reason, Value, quote_segment
from factbook.web.pages import PageContext, PageRoute
from factbook.web.shares import Address, Share

_VALUES_ON_PAGE: Final = 50
_TOP: Final = 20
_PART: Final = ("kind", "namespace", "owner", "system", "type", "lifecycle")
_FILTER: Final = ("known", "reason", "value", "min", "below")
_GROUPS: Final[dict[GroupBy, str]] = {"owner": "Owner", "system": "System", "kind": "Kind"}


class GroupRow(NamedTuple):
    """A group of entities: title, path and figures; `summary` is the true share or median."""

    title: str
    path: str
    figures: GroupFigures
    summary: str | None


class ValueRow(NamedTuple):
    """An entity with its value and time, or the reason the value is missing."""

    ref: str
    path: str
    value: Value | None
    reason: Reason | None
    at: int | None
    kept: bool


def make_fact_path(source_id: str, fact: str) -> str:
    """Path of the fact page."""
    return f"/data-sources/{quote_segment(source_id)}/facts/{quote_segment(fact)}"


def _make_values_address(address: Address, **wanted: str) -> str:
    """URL of the entity list with a different value filter."""
    return address.to(**{**dict.fromkeys(_FILTER), **wanted}) + "#entities"


async def show_fact_across(visit: PageContext) -> Reply:
    """Show the fact page."""
    address, asked = await _find_question(visit)
    column, database = asked.column, visit.state.database
    fact = column.fact
    by = cast("GroupBy", visit.query("by") or "owner")
    if by not in _GROUPS:
        raise InputError("The address of this page is incomplete.")
    clock, anew = visit.state.clock, visit.request.wants_fresh
    kept = await across.catalog_figures(database, clock, asked, by, top=_TOP, anew=anew)
    found = kept.value.distribution
    after = fact_columns.place_of_cursor(fact, visit.query("cursor"))
    page, _ = await across.catalog_values(database, clock, asked, after, _VALUES_ON_PAGE, anew=anew)
    more = fact_columns.write_value_cursor(page.more)
    fact_path = f"{quote_segment(column.source.id)}/{quote_segment(fact.name)}"
    rows = []
    for row in page.rows:
        value = None if row.value is None else formats.display_fact(fact, row.value)
        reason = None if row.reason is None else formats.describe_reason(row.reason)
        path = f"{formats.make_entity_path(row.ref)}/facts/{fact_path}"
        rows.append(ValueRow(row.ref, path, value, reason, row.at, row.kept))
    return visit.page(
        "data-source-fact.html",
        source=column.source,
        fact=fact,
        label=formats.get_fact_title(fact),
        address=address,
        found=found,
        age=result_queries.read_age_of_facts(database, [column.source.id], kept.at),
        figures=list(_list_spread(fact, found)),
        chart=_draw_histogram(address, fact, found.histogram),
        shares=list(_list_value_shares(address, fact, found)),
        reasons=[
            Share(word, count, found.entities, _make_values_address(address, reason=word))
            for word, count in found.reasons.items()
        ],
        by=by,
        group_titles=_GROUPS,
        groups=[_make_group_row(address, fact, by, each) for each in found.groups],
        rows=rows,
        sorted_by=asked.sort,
        is_ordered=column.is_ordered,
        chosen=[
            (name, address.query[name]) for name in (*_PART, *_FILTER) if name in address.query
        ],
        part_names=_PART,
        next_path=f"{address.to(cursor=more)}#entities" if more else None,
        first_path=f"{address.to()}#entities" if after else None,
        export=address._replace(
            path=f"/data-sources/{quote_segment(column.source.id)}/values/{quote_segment(fact.name)}"
        ).to(by=None, sort=None),
    )


async def download_fact_values(visit: PageContext) -> Reply:
    """Download the entities and their values as CSV."""
    _, asked = await _find_question(visit)
    return Reply(
        stream_value_lines(visit.state.database, asked),
        headers=make_attachment_headers(f"{asked.column.source.id}-{asked.column.fact.name}"),
        content_type=CONTENT_TYPE,
    )


async def _find_question(visit: PageContext) -> tuple[Address, ValueQuery]:
    """Parse the query in the URL; raises NotFoundError and InputError."""
    source_id, name = visit.request.parameter("id"), visit.request.parameter("fact")
    column = await fact_columns.find_fact_column(
        visit.state.database, visit.state.registry, source_id, name
    )
    names = (*_PART, *_FILTER, "by", "sort", "cursor")
    query = {each: text for each in names if (text := visit.query(each))}
    part = await fact_columns.find_part(
        visit.state.database, **{each: query.get(each) for each in _PART}
    )
    wanted = fact_columns.read_value_filter(
        column.fact, {each: query.get(each) for each in _FILTER}
    )
    sort = fact_columns.check_sort(column, query.get("sort"))
    address = Address(make_fact_path(source_id, name), query)
    return address, ValueQuery(column, part, wanted, sort)


def _list_spread(fact: Fact, found: Distribution) -> Iterator[tuple[str, str]]:
    """(title, value) of each statistic: lowest, quartiles, median, highest and mean."""
    if found.spread is None:
        return
    titles = ("Lowest", "Lower quartile", "Median", "Upper quartile", "Highest", "Mean")
    for title, value in zip(titles, found.spread, strict=True):
        if value is not None:
            yield title, _format_quantity(fact, value)


def _draw_histogram(address: Address, fact: Fact, bins: Sequence[Bin]) -> Any:
    if not bins:
        return None
    columns = []
    for one in bins:
        bounds = {
            name: iso(max(0, int(value))) if fact.type == "datetime" else repr(value)
            for name, value in (("min", one.start), ("below", one.end))
            if value is not None
        }
        words = (
            f"{_format_range(fact, one)}: {formats.count_noun(one.number, 'entity', 'entities')}"
        )
        edge = "older" if one.start is None else _format_edge(fact, one.start)
        columns.append(Column(one.number, words, edge, _make_values_address(address, **bounds)))
    return draw_histogram(
        columns, title=f"Entities by {formats.get_fact_title(fact)}", ident="spread"
    )


def _list_value_shares(address: Address, fact: Fact, found: Distribution) -> Iterator[Share]:
    """Bars for true and false, or for the most frequent values."""
    if found.true is not None:
        yield Share("yes", found.true, found.known, _make_values_address(address, value="true"))
        no = found.known - found.true
        yield Share("no", no, found.known, _make_values_address(address, value="false"))
    most = found.top[0][1] if found.top else 0
    for value, count in found.top:
        text = str(value)
        # A truncated text can't be a filter: it is only the start of the counted value.
        is_whole = len(text) < LONGEST_SHOWN_TEXT // 2
        path = (
            _make_values_address(address, value=text)
            if is_whole and text and "\0" not in text
            else None
        )
        yield Share(formats.format_fact(fact, value) or "empty", count, most, path)


def _make_group_row(address: Address, fact: Fact, by: GroupBy, group: GroupFigures) -> GroupRow:
    name = group.name or fact_columns.NO_VALUE
    path = address.to(**{by: name})
    if group.true is not None:
        summary = formats.format_share(group.true, group.known) if group.known else None
    else:
        summary = None if group.median is None else _format_quantity(fact, group.median)
    return GroupRow(formats.shorten_owner(group.name) or "none", path, group, summary)


def _format_quantity(fact: Fact, value: float) -> str:
    if fact.type == "datetime":
        return charts.format_moment(int(value))
    return formats.format_quantity(value, formats.get_fact_unit(fact))


def _format_range(fact: Fact, one: Bin) -> str:
    if one.start is None and one.end is not None:
        return f"before {_format_edge(fact, one.end)}"
    if one.end is None and one.start is not None:
        return f"from {_format_edge(fact, one.start)}"
    assert one.start is not None
    assert one.end is not None
    return f"{_format_edge(fact, one.start)} to below {_format_edge(fact, one.end)}"


def _format_edge(fact: Fact, value: float) -> str:
    if fact.type == "datetime":
        return charts.format_moment(int(value)).removesuffix(" UTC").rpartition(" ")[0]
    return formats.format_figure(value)


_NEEDS: Final = (CATALOG_READ, SOURCE_READ)
_PATH: Final = "/data-sources/{id}/facts/{fact:path}"

FACT_ACROSS: Sequence[PageRoute] = (
    PageRoute("GET", "/data-sources/{id}/values/{fact:path}", download_fact_values, _NEEDS),
    PageRoute("GET", _PATH, show_fact_across, _NEEDS),
)
