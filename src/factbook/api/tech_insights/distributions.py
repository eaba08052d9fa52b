"""One fact of many entities over HTTP: its distribution, and the entities with their values."""

from typing import Any, cast

from factbook.api.openapi.parameters import FACTS_LIMIT, SOURCE_ID
from factbook.api.tech_insights import value_parameters
from factbook.clock import iso, iso_or_none
from factbook.datasources import fact_columns, value_filters
from factbook.facts import catalog_figures, distribution
from factbook.facts.across import By, FactColumn
from factbook.facts.catalog_figures import CatalogFigures
from factbook.facts.entity_values import EntityValue, ValueQuery
from factbook.facts.kept_answers import KeptAnswer
from factbook.facts.schema import Fact
from factbook.facts.value_conditions import ValueFilter
from factbook.http import csv_lines
from factbook.http.context import SourceContext
from factbook.http.requests import JsonReply, Request, reply
from factbook.schemas import facts

_TOP = 20
_ENDS = 5
_PAGE = 100


async def show(request: Request, state: SourceContext) -> JsonReply[facts.FactDistribution]:
    """The distribution of a fact over the entities that its source is about.

    What is unknown is counted by its reason, and is no value. `lowest` and `highest` are the
    entities at both ends of what has an order. In a catalog of 20,000 entities or more, figures are
    kept for a minute: `asOf` says when they were counted, and `Cache-Control: no-cache` in the
    request has them counted anew.
    """
    asked = await _asked(request, state)
    by = cast("By | None", value_parameters.BY.of(request))
    top = value_parameters.TOP.of(request)
    count = value_parameters.ENDS.of(request)
    found = await catalog_figures.figures(
        state.database,
        state.clock,
        asked,
        by,
        top=_TOP if top is None else top,
        ends=_ENDS if count is None else count,
        anew=request.wants_fresh,
    )
    return reply(_shown(asked.column, found, by))


async def values(request: Request, state: SourceContext) -> JsonReply[facts.ValuePage]:
    """The entities that a source is about with their value of a fact, or why they have none.

    By value, those without one come last, and `asOf` says when the others were read, as for
    distributions.
    """
    asked = await _asked(request, state)
    column = asked.column
    asked = asked._replace(
        wanted=_filter(request, column.fact),
        sort=value_filters.sort(column, value_parameters.VALUE_SORT.of(request)),
    )
    after = value_filters.place(column.fact, value_parameters.VALUE_CURSOR.of(request))
    limit = FACTS_LIMIT.of(request) or _PAGE
    found, at = await catalog_figures.values(
        state.database, state.clock, asked, after, limit, anew=request.wants_fresh
    )
    return reply(
        facts.ValuePage(
            data_source_id=column.source.id,
            fact=_fact(column.fact),
            entities=[_entity(row) for row in found.rows],
            draft=column.source.draft,
            as_of=iso(at),
            next_cursor=value_filters.cursor(found.more),
        )
    )


async def export(request: Request, state: SourceContext) -> JsonReply[str]:
    """The same entities, all of them, as CSV from one snapshot, by reference.

    A text that a spreadsheet could take for a formula begins with an apostrophe.
    """
    asked = await _asked(request, state)
    asked = asked._replace(wanted=_filter(request, asked.column.fact))
    return JsonReply(
        csv_lines.of_values(state.database, asked),
        headers=csv_lines.attachment(f"{asked.column.source.id}-{asked.column.fact.name}"),
        content_type=csv_lines.CONTENT_TYPE,
    )


async def _asked(request: Request, state: SourceContext) -> ValueQuery:
    """The fact and the part of the catalog that the request names."""
    name = value_parameters.FACT.of(request) or ""
    column = await fact_columns.find(state.database, state.registry, SOURCE_ID.of(request), name)
    part = await fact_columns.part(
        state.database,
        **{each.name: each.of(request) for each in value_parameters.CATALOG_PART},
    )
    return ValueQuery(column, part)


def _filter(request: Request, fact: Fact) -> ValueFilter:
    return value_filters.read(
        fact, {each.name: each.text(request) for each in value_parameters.VALUE_FILTER}
    )


def _shown(
    column: FactColumn, kept: KeptAnswer[CatalogFigures], by: By | None
) -> facts.FactDistribution:
    fact, found = column.fact, kept.value.distribution
    lowest, highest = ([_entity(row) for row in rows] for rows in kept.value.ends)
    shown = facts.FactDistribution(
        data_source_id=column.source.id,
        fact=_fact(fact),
        entities=found.entities,
        known=found.known,
        unknown=found.entities - found.known,
        unknown_reasons=found.reasons,
        kept=found.kept,
        draft=column.source.draft,
        truncated=not found.is_whole,
        as_of=iso(kept.at),
        oldest=iso_or_none(found.oldest),
        newest=iso_or_none(found.newest),
        lowest=lowest or None,
        highest=highest or None,
        by=by,
        more_groups=found.more_groups,
    )
    if by is not None:
        shown.groups = [_group(fact, group) for group in found.groups]
    _add_values(shown, fact, found)
    return shown


def _add_values(
    shown: facts.FactDistribution, fact: Fact, found: distribution.Distribution
) -> None:
    if found.true is not None:
        shown.booleans = {"true": found.true, "false": found.known - found.true}
    if found.spread is not None:
        shown.spread = _spread(fact, found.spread)
        shown.histogram = [
            facts.HistogramBin(one.number, _figure(fact, one.start), _figure(fact, one.end))
            for one in found.histogram
        ]
    if fact.type in {"string", "set"}:
        shown.top = [facts.FrequentValue(value, count) for value, count in found.top]
        shown.distinct = found.distinct


def _spread(fact: Fact, spread: distribution.Spread) -> facts.ValueSpread:
    return facts.ValueSpread(
        min=_figure(fact, spread.least),
        lower_quartile=_figure(fact, spread.lower_quartile),
        median=_figure(fact, spread.median),
        upper_quartile=_figure(fact, spread.upper_quartile),
        max=_figure(fact, spread.largest),
        mean=spread.mean,
    )


def _group(fact: Fact, group: distribution.GroupFigures) -> facts.GroupShare:
    return facts.GroupShare(
        group.entities, group.known, group.name, group.true, _figure(fact, group.median)
    )


def _fact(fact: Fact) -> facts.FactShown:
    return facts.FactShown(fact.name, fact.type, fact.description, fact.unit)


def _entity(row: EntityValue) -> facts.ValueOfEntity:
    return facts.ValueOfEntity(
        row.ref, row.value, row.reason, iso_or_none(row.at), row.kept, row.kept
    )


def _figure(fact: Fact, value: float | None) -> Any:
    """A number, whole where it is; a moment as a time."""
    if value is None:
        return None
    if fact.type == "datetime":
        return iso(int(value))
    return int(value) if value == int(value) and abs(value) < 2**53 else value
