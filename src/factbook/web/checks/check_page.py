"""Page of a check: its rule as a sentence, who fails with what was seen, its past and its use."""

from collections.abc import Mapping, Sequence
from itertools import dropwhile
from typing import Any, Final, NamedTuple

from factbook.auth.permissions import CATALOG_READ, CHECK_READ, CHECK_WRITE
from factbook.catalog.store import collectable
from factbook.checks import state
from factbook.checks.background import days
from factbook.checks.definitions.check import Check
from factbook.checks.results import result_age, result_pages
from factbook.checks.results.result_queries import ResultFilter
from factbook.checks.rules import sentence
from factbook.checks.state import UNKNOWN
from factbook.checks.states import change_store, count_store
from factbook.checks.states.count_store import StateCounts
from factbook.checks.versions.check_store import StoredCheck, check_store
from factbook.checks.versions.scorecard_store import scorecard_store
from factbook.clock import DAY
from factbook.datasources.custom import yaml_text
from factbook.errors import NotFoundError
from factbook.http import csv_lines
from factbook.http.requests import Reply
from factbook.web.charts import Point, line_chart
from factbook.web.checks import authors, check_list, filters, result_rows, scorecard_list, shares
from factbook.web.checks.shares import ResultFigures
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

NOUN: Final = "check"
_ROWS: Final = 25
_DAYS: Final = 90
_CHANGES: Final = 10
_VERSIONS: Final = 10
_FILTERS: Final = ("owner", "team", "state", "entity")


class ChangedResult(NamedTuple):
    """A change of a result; `ref` is None of an entity that is gone."""

    ref: str | None
    at: int
    before: str
    after: str


class CheckUse(NamedTuple):
    """A scorecard with a check, and the title of its level, '' without one."""

    id: str
    title: str
    level: str


async def show(visit: PageContext) -> Reply:
    """Page of a check."""
    stored, check = await of_address(visit)
    database, owners = visit.state.database, await filters.owners(visit)
    counts = await _counts(visit, check.id, owners)
    address = filters.address(visit, shares.check_path(check.id), (*_FILTERS, "cursor"))
    word = filters.state_asked(visit) or _first_state(counts)
    rows, more = await _rows(visit, check, word, owners, counts)
    query = {name: address.query[name] for name in ("owner", "team") if name in address.query}
    return visit.page(
        "check.html",
        stored=stored,
        check=check,
        newest=stored.newest,
        sentence=sentence.of(check.rule),
        when=sentence.of(check.applicable_when) if check.applicable_when else None,
        about=_about(stored),
        on_unknown=None if check.on_unknown == UNKNOWN else state.word(check.on_unknown),
        figures=ResultFigures(counts),
        states=shares.of_states(check.id, counts, **query),
        word=word,
        age=await result_age.of_checks(database, [check.id], visit.now),
        rows=rows,
        address=address,
        chosen=[(name, address.query[name]) for name in _FILTERS if name in address.query],
        first=address.to() if "cursor" in address.query else None,
        more=address.to(cursor=more) if more else None,
        export=address._replace(path=f"{shares.check_path(check.id)}/export").to(entity=None),
        is_part=bool(owners),
        chart=await _chart(visit, stored),
        changes=await _changes(visit, check.id),
        versions=(await check_store.versions(database, check.id))[:_VERSIONS],
        uses=await _uses(visit, check.id),
        may_write=await authors.may_write(visit, stored, CHECK_WRITE),
    )


async def export(visit: PageContext) -> Reply:
    """The results of a check as CSV."""
    _, check = await of_address(visit)
    word = filters.state_asked(visit)
    wanted = ResultFilter([word] if word else [], await filters.owners(visit))

    async def lines() -> Any:
        yield csv_lines.line(("entity", "owner", "state", "stale")).encode()
        async for found in result_pages.everything(visit.state.database, [check.id], wanted):
            rows = (
                (row.ref, row.owner, state.word(row.state), csv_lines.plain(row.stale))
                for _, row in found
            )
            yield "".join(map(csv_lines.line, rows)).encode()

    headers = csv_lines.attachment(check.id)
    return Reply(lines(), headers=headers, content_type=csv_lines.CONTENT_TYPE)


async def of_address(visit: PageContext) -> tuple[StoredCheck, Check]:
    """The check in the address; raises NotFoundError, also if this release cannot read it."""
    id_ = filters.definition_id(visit, NOUN)
    stored = await check_store.existing(visit.state.database, id_)
    check = check_list.read(stored)
    if check is None:
        raise NotFoundError(f"The check {id_} was made by another release, which reads it.")
    return stored, check


async def _counts(visit: PageContext, check_id: str, owners: Sequence[str]) -> StateCounts:
    found = await count_store.by_owner(visit.state.database, check_id)
    chosen = [found.get(one, StateCounts()) for one in owners] if owners else found.values()
    total = StateCounts()
    for one in chosen:
        total = total.plus(one)
    return total


def _first_state(counts: StateCounts) -> str:
    """The state whose entities are shown first: what is wrong before what is not."""
    for word, count in (("fail", counts.failing), ("unknown", counts.undecided)):
        if count:
            return word
    return "pass"


async def _rows(
    visit: PageContext, check: Check, word: str, owners: Sequence[str], counts: StateCounts
) -> tuple[list[result_rows.ResultRow], str | None]:
    if entity := visit.query("entity"):
        return await result_rows.of_entity(visit, check, entity), None
    # Entities that a check is not about are not counted.
    counted = dict(zip(shares.KINDS, counts, strict=True))
    number = None if word == "not-applicable" else counted[word]
    if number == 0:
        return [], None
    return await result_rows.page(visit, check, ResultFilter([word], owners), _ROWS, number)


def _about(stored: StoredCheck) -> str | None:
    found = stored.current.get("appliesTo")
    return yaml_text.written({"appliesTo": found}) if found else None


async def _chart(visit: PageContext, stored: StoredCheck) -> Any:
    """Entities that fail, day by day."""
    if stored.slot is None:
        return None
    now = visit.now
    first, today = now // DAY - _DAYS, now // DAY
    found = await days.totals(visit.state.database, stored.id, first, today - 1)
    totals = await count_store.totals(visit.state.database)
    # Before the first of them nothing was counted.
    kept = list(dropwhile(lambda one: not any(one.counts), found))
    points: list[Point] = [(one.day * DAY, one.counts.failing) for one in kept]
    current = totals.get(stored.id, StateCounts())
    points.append((now, current.failing))
    counted = [(one.day * DAY, one.counts) for one in kept] + [(now, current)]
    notes = {at: f"of {sum(one) - one.inapplicable:,}" for at, one in counted}
    return line_chart(
        points,
        title="Failing entities",
        unit="",
        start=first * DAY,
        end=now,
        notes=notes,
        ident="failing",
    )


async def _changes(visit: PageContext, check_id: str) -> list[ChangedResult]:
    found = await change_store.latest_of_check(visit.state.database, check_id, _CHANGES)
    names = await collectable.refs_of_ids(visit.state.database, {one.entity_id for one in found})
    return [
        ChangedResult(
            names.get(one.entity_id), one.at, state.word(one.before), state.word(one.after)
        )
        for one in found
    ]


async def _uses(visit: PageContext, check_id: str) -> list[CheckUse]:
    found = []
    for stored in await scorecard_store.everything(visit.state.database):
        card = scorecard_list.read(stored)
        entries = card.entries if card else ()
        for entry in entries:
            if card and entry.check == check_id:
                titles: Mapping[str, str] = dict(card.levels)
                found.append(CheckUse(card.id, card.title, titles.get(entry.level or "", "")))
    return found


_NEEDS: Final = (CATALOG_READ, CHECK_READ)

CHECK_PAGE: Sequence[PageRoute] = (
    PageRoute("GET", "/checks/{id}", show, _NEEDS),
    PageRoute("GET", "/checks/{id}/export", export, _NEEDS),
)
