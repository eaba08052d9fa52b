"""Results of checks over HTTP: many, the figures of one check, and one with what it rests on."""

from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec

from factbook.api.checks import result_parameters as parameters
from factbook.api.checks.parameters import CHECK_ID, PAGE_LIMIT
from factbook.auth.permissions import SOURCE_READ
from factbook.catalog import ref as refs
from factbook.catalog.store import by_ref, collectable
from factbook.checks import state
from factbook.checks.definitions import scorecard
from factbook.checks.exemptions import exemption_store
from factbook.checks.exemptions.exemption_store import ExemptionFilter
from factbook.checks.results import result_age, result_pages, result_queries
from factbook.checks.results.result_age import ResultAge
from factbook.checks.results.result_pages import ResultPlace
from factbook.checks.results.result_queries import (
    CheckedRow,
    CheckResult,
    EntityResults,
    ResultFilter,
)
from factbook.checks.rules.explanation import Evidence, Explanation
from factbook.checks.states import change_store, count_store
from factbook.checks.states.count_store import StateCounts
from factbook.checks.versions.check_store import check_store
from factbook.clock import iso, iso_or_none
from factbook.errors import InputError, NotFoundError
from factbook.http import csv_lines
from factbook.http.context import HandlerContext
from factbook.http.requests import JsonReply, Request, reply
from factbook.schemas import results

_PAGE: Final = 100
_HEADER: Final = ("check", "entity", "owner", "state", "stale")
_EXEMPTIONS: Final = 20


async def list_all(request: Request, state: HandlerContext) -> JsonReply[results.CheckResults]:
    """Results by check and reference, of every check in effect or of some.

    Entities that a check is not about come where `state` is `not-applicable`. A page looks at 20
    checks, so it may hold few results, or none, while there is a `nextCursor`.
    """
    wanted, only = _wanted(request), _ids(request)
    limit = PAGE_LIMIT.of(request) or _PAGE
    entity = parameters.ENTITY.of(request)
    if entity is not None:
        found = await _of_entity(state, str(refs.parse(entity)), only)
        shown = [row for row in _rows_of(found) if _meets(row, found, wanted)]
        return reply(results.CheckResults(shown))
    place = _place(parameters.CURSOR.of(request))
    page = await result_pages.page(state.database, only, wanted, place, limit)
    cursor = None if page.next is None else "/".join(page.next)
    return reply(results.CheckResults([_row(*one) for one in page.rows], cursor))


async def export(request: Request, state: HandlerContext) -> JsonReply[str]:
    """The same results, all of them, as CSV.

    A text that a spreadsheet could take for a formula begins with an apostrophe.
    """
    return JsonReply(
        _lines(state, _ids(request), _wanted(request)),
        headers=csv_lines.attachment("check-results"),
        content_type=csv_lines.CONTENT_TYPE,
    )


async def overview(request: Request, state: HandlerContext) -> JsonReply[results.CheckOverview]:
    """The numbers of entities by their state, kept as results change."""
    id_ = CHECK_ID.of(request)
    stored = await check_store.existing(state.database, id_)
    counts = (await count_store.totals(state.database, [id_])).get(id_, StateCounts())
    changed = await change_store.last_of(state.database, id_)
    known = counts.passing + counts.failing
    times = [at for at in (changed, stored.in_effect_at) if at is not None]
    return reply(
        results.CheckOverview(
            check_id=id_,
            title=stored.current["title"],
            version=stored.version,
            passing=counts.passing,
            failing=counts.failing,
            unknown=counts.undecided,
            exempt=counts.exempt,
            not_applicable=counts.inapplicable,
            total=known + counts.undecided,
            percentage=round(100 * counts.passing / known, 1) if known else None,
            last_run=iso_or_none(max(times, default=None)),
            **aged(await result_age.of_checks(state.database, [id_], state.clock())),
        )
    )


async def get(request: Request, state: HandlerContext) -> JsonReply[results.OneCheckResult]:
    """The result of a check for an entity: each comparison with what it saw and wanted.

    A token that may not read data sources is shown no values, nor texts that may hold some.
    """
    ref, id_ = str(refs.parse(request.parameter("ref"))), CHECK_ID.of(request)
    await check_store.existing(state.database, id_)
    found = await _of_entity(state, ref, [id_])
    if not found.results:
        raise NotFoundError(f"The check {id_} has no results yet; it is not published.")
    [result] = found.results
    shown = _shown(found, result)
    if not reads_values(request):
        shown.message = shown.fix = None
        shown.because = [_without_value(one) for one in shown.because]
    if shown.state == "exempt":
        shown.exemption = await _exemption(state, ref, id_)
    return reply(shown)


async def history(request: Request, state: HandlerContext) -> JsonReply[results.ResultHistory]:
    """The changes of a result, newest first, with what was written at each."""
    parts = (request.parameter(name) for name in ("kind", "namespace", "name"))
    ref, id_ = str(refs.parse("{}:{}/{}".format(*parts))), CHECK_ID.of(request)
    await check_store.existing(state.database, id_)
    entity_id = await collectable.id_of(state.database, ref)
    if entity_id is None:
        raise await by_ref.unknown(state.database, ref)
    limit, cursor = PAGE_LIMIT.of(request) or _PAGE, parameters.HISTORY_CURSOR.of(request)
    before = () if cursor is None else (_moment(cursor),)
    found = await change_store.of_entity(state.database, entity_id, id_, limit + 1, *before)
    page = found[:limit]
    further = f"{page[-1].at}-{page[-1].id}" if len(found) > limit else None
    changes = [
        results.ResultChange(iso(one.at), _word(one.after), one.why, _word(one.before))
        for one in page
    ]
    return reply(results.ResultHistory(id_, ref, changes, further))


def reads_values(request: Request) -> bool:
    """Return true if the caller may read the values of facts."""
    return request.token is not None and SOURCE_READ in request.token.permissions


def _without_value(seen: results.SeenFact) -> results.SeenFact:
    """A comparison without the values of facts; what is wanted may be that of another fact."""
    return msgspec.structs.replace(seen, value=None, wanted=None)


def fix_of(told: Explanation) -> results.ResultFix | None:
    """The way to make a check pass."""
    if not (told.fix_link or told.fix_instructions):
        return None
    return results.ResultFix(told.fix_link, told.fix_instructions)


def aged(age: ResultAge) -> dict[str, Any]:
    """The members of an answer with figures of this age."""
    return {"as_of": iso(age.as_of), "stale_sources": age.stale_sources}


async def _of_entity(state: HandlerContext, ref: str, only: list[str]) -> EntityResults:
    found = await result_queries.of_entity(state.database, ref, state.clock(), only=only)
    if found is None:
        raise await by_ref.unknown(state.database, ref)
    return found


async def _exemption(state: HandlerContext, ref: str, check_id: str) -> str | None:
    wanted = ExemptionFilter("approved", ref, check_id)
    found = await exemption_store.page(state.database, wanted, _EXEMPTIONS)
    return next((one.id for one in found if one.holds(state.clock())), None)


async def _lines(
    state: HandlerContext, only: list[str], wanted: ResultFilter
) -> AsyncIterator[bytes]:
    yield csv_lines.line(_HEADER).encode()
    async for rows in result_pages.everything(state.database, only, wanted):
        lines = (
            (id_, row.ref, row.owner, _word(row.state), csv_lines.plain(row.stale))
            for id_, row in rows
        )
        yield "".join(map(csv_lines.line, lines)).encode()


def _ids(request: Request) -> list[str]:
    given = [id_ for one in parameters.CHECK_IDS.of(request) for id_ in one.split(",") if id_]
    if len(given) > parameters.MOST_CHECKS:
        raise InputError(f"checkIds can name {parameters.MOST_CHECKS} checks at most.")
    return given


def _wanted(request: Request) -> ResultFilter:
    return ResultFilter(
        states=parameters.STATE.of(request),
        owners=parameters.owners(request),
        kind=parameters.KIND.of(request),
        changed_since=parameters.CHANGED_SINCE.of(request),
    )


def _meets(row: results.CheckResultRow, found: EntityResults, wanted: ResultFilter) -> bool:
    words = wanted.states or state.WORDS[:-1]
    since = next((one.since for one in found.results if one.check.id == row.check_id), None)
    return (
        row.state in words
        and (not wanted.owners or found.owner in wanted.owners)
        and (wanted.kind is None or found.ref.startswith(f"{wanted.kind.lower()}:"))
        and (wanted.changed_since is None or (since or 0) >= wanted.changed_since)
    )


def _place(cursor: str | None) -> ResultPlace:
    if cursor is None:
        return ResultPlace()
    check_id, _, ref = cursor.partition("/")
    return ResultPlace(check_id, ref)


def _moment(cursor: str) -> tuple[int, int]:
    at, _, id_ = cursor.partition("-")
    return int(at), int(id_)


def _rows_of(found: EntityResults) -> list[results.CheckResultRow]:
    return [
        results.CheckResultRow(
            one.check.id, found.ref, _word(one.state), found.owner or None, one.is_stale
        )
        for one in found.results
    ]


def _row(check_id: str, row: CheckedRow) -> results.CheckResultRow:
    return results.CheckResultRow(check_id, row.ref, _word(row.state), row.owner or None, row.stale)


def _shown(found: EntityResults, result: CheckResult) -> results.OneCheckResult:
    check, told = result.check, result.explanation
    effective = check.effective_from
    return results.OneCheckResult(
        check_id=check.id,
        title=check.title,
        entity_ref=found.ref,
        state=_word(result.state),
        severity=check.severity,
        flapping=result.is_flapping,
        stale=result.is_stale,
        because=[] if told is None else [seen(one) for one in told.because],
        owner=found.owner or None,
        since=iso_or_none(result.since),
        message=None if told is None else told.message,
        fix=None if told is None else fix_of(told),
        effective_from=None if effective is None else scorecard.shown_day(effective),
    )


def seen(one: Evidence) -> results.SeenFact:
    """Evidence of a comparison, as interfaces show it."""
    return results.SeenFact(
        path=one.path,
        source=one.leaf.fact.source,
        fact=one.leaf.fact.fact,
        operator=one.leaf.operator,
        state=_word(one.state),
        value=one.value,
        wanted=one.wanted,
        inside=one.leaf.fact.path,
        collected_at=iso_or_none(one.collected_at),
        reason=one.reason,
        stale=one.stale,
    )


_word = state.name_state
