"""Checks: their list, and the page of each with its rule, results, past and use."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import dropwhile
from typing import Any, Final, NamedTuple

from factbook.auth.permissions import (
    CATALOG_READ,
    CHECK_READ,
    CHECK_WRITE,
    EXEMPTION_REQUEST,
    SOURCE_READ,
)
from factbook.catalog import people_trust
from factbook.catalog import ref as refs
from factbook.catalog.store import related_entities, stored_entities
from factbook.checks import state
from factbook.checks.definitions import exemption_store
from factbook.checks.definitions.definition_versions import (
    StoredCheck,
    check_store,
    scorecard_store,
)
from factbook.checks.definitions.exemption_store import ExemptionActor
from factbook.checks.results import result_queries, state_store
from factbook.checks.results.grader import GroupHierarchy
from factbook.checks.results.result_queries import CheckedRow, ExplainedRow, ResultFilter
from factbook.checks.results.state_store import StateCounts
from factbook.checks.rules import language
from factbook.checks.rules.check_definition import Check, parse_stored_check
from factbook.checks.rules.language import CHECKS, ENTITY
from factbook.checks.rules.rule_evaluation import Evidence, Explanation
from factbook.checks.state import UNKNOWN
from factbook.clock import DAY
from factbook.datasources.custom import yaml_text
from factbook.datasources.fact_columns import NO_VALUE
from factbook.errors import FactbookError, InputError, NotFoundError
from factbook.http import csv_lines
from factbook.http.requests import Reply
from factbook.schemas import patterns
from factbook.web.charts import Point, line_chart
from factbook.web.checks import authors, scorecard_list, shares
from factbook.web.checks.shares import ResultFigures
from factbook.web.data_sources.fact_across import Address
from factbook.web.site import fact_display, formats
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.formats import segment
from factbook.web.site.page_context import PageContext

STATES: Final = [
    ("", "Any"),
    *((word, word.replace("-", " ").capitalize()) for word in state.WORDS),
]
_LARGEST_PAGE: Final = 10_000


def definition_id(visit: PageContext, noun: str) -> str:
    """The id in the address; raises NotFoundError for what no check or scorecard is called."""
    text = visit.request.parameter("id")
    if not re.fullmatch(patterns.SOURCE_ID, text):
        raise NotFoundError(f"There is no {noun} of this name.")
    return text


def filter_address(visit: PageContext, path: str, names: Iterable[str]) -> Address:
    """The address of a page with those of its parameters that are given."""
    return Address(path, {name: text for name in names if (text := visit.query(name))})


def team(visit: PageContext) -> str | None:
    """The team that is asked for; raises InputError for what is no reference."""
    text = visit.query("team")
    return refs.canonicalize_ref(text, kind="group") if text else None


async def owner_choices(visit: PageContext) -> Sequence[str]:
    """The owners that are asked for: one, or a team with all groups below it; all if empty.

    Raises InputError for what is no reference.
    """
    group, owner = team(visit), visit.query("owner")
    if group is not None:
        tree = GroupHierarchy(await related_entities.read_group_parents(visit.state.database))
        return sorted(tree.within(group))
    if owner == NO_VALUE:
        return [""]
    return [refs.canonicalize_ref(owner, kind="group")] if owner else []


def state_asked(visit: PageContext) -> str | None:
    """The state that is asked for; raises InputError for another word."""
    word = visit.query("state") or None
    if word is not None and word not in state.WORDS:
        raise InputError(f"A result is {', '.join(state.WORDS)}.")
    return word


def place(visit: PageContext) -> int:
    """The id of the entity that a page begins after; raises InputError."""
    return _number(visit.query("after"), 2**53, 0)


def page_number(visit: PageContext) -> int:
    """The number of a page of a list, from 1; raises InputError."""
    return max(1, _number(visit.query("page"), _LARGEST_PAGE, 1))


def _number(text: str, most: int, default: int) -> int:
    if not text:
        return default
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not is_number or int(text) > most:
        raise InputError("The address of this page is incomplete.")
    return int(text)


PATH: Final = "/checks"
_PAGE: Final = 50
_SHOWN: Final = (
    ("", "All"),
    ("failing", "Failing somewhere"),
    ("unknown", "Unknown somewhere"),
    ("draft", "With a draft"),
)


class CheckLine(NamedTuple):
    """A check of the list; `check` is None of one that this release cannot read."""

    stored: StoredCheck
    check: Check | None
    sentence: str
    figures: ResultFigures


async def list_checks(visit: PageContext) -> Reply:
    """Page of the checks."""
    database = visit.state.database
    counts = await state_store.count_totals(database)
    stored = await check_store.everything(database)
    query, shown = visit.query("q"), visit.query("show")
    found = [
        one
        for one in stored
        if _is_named(one, query.casefold()) and _is_meant(one, counts.get(one.id), shown)
    ]
    found.sort(key=lambda one: (-counts.get(one.id, StateCounts()).failing, one.id))
    number = page_number(visit)
    address = filter_address(visit, PATH, ("q", "show"))
    page = found[(number - 1) * _PAGE : number * _PAGE]
    return visit.page(
        "checks.html",
        rows=[_line(one, counts.get(one.id, StateCounts())) for one in page],
        number=len(stored),
        age=await result_queries.read_age_of_checks(database, [one.id for one in page], visit.now),
        found=len(found),
        query=query,
        show=shown if shown in dict(_SHOWN) else "",
        choices=_SHOWN,
        before=address.to(page=str(number - 1)) if number > 1 else None,
        after=address.to(page=str(number + 1)) if number * _PAGE < len(found) else None,
        may_write=authors.may_define(visit, CHECK_WRITE),
    )


def read(stored: StoredCheck) -> Check | None:
    """The check in effect, or what comes closest; None if this release cannot read it."""
    try:
        return parse_stored_check(stored.current)
    except FactbookError:
        return None


def _line(stored: StoredCheck, counts: StateCounts) -> CheckLine:
    check = read(stored)
    words = language.describe_rule(check.rule) if check else ""
    return CheckLine(stored, check, words, ResultFigures(counts))


def _is_named(stored: StoredCheck, text: str) -> bool:
    names = (stored.id, stored.title, str(stored.current.get("owner", "")))
    return any(text in name.casefold() for name in names)


def _is_meant(stored: StoredCheck, counts: StateCounts | None, shown: str) -> bool:
    match shown:
        case "failing":
            return counts is not None and counts.failing > 0
        case "unknown":
            return counts is not None and counts.undecided > 0
        case "draft":
            return stored.draft is not None
    return True


CHECK_LIST: Sequence[PageRoute] = (PageRoute("GET", PATH, list_checks, (CATALOG_READ, CHECK_READ)),)


_LONGEST: Final = 120
_MOST_SEEN: Final = 6


class SeenValue(NamedTuple):
    """The words of what a comparison saw, and the value with its time, or why there is none."""

    words: str
    word: str
    path: str | None
    value: str | None
    at: int | None
    reason: str | None
    stale: bool


class ResultRow(NamedTuple):
    """An entity with its result; `fix` is an address for a link, if it is one."""

    ref: str
    title: str
    owner: str
    word: str
    since: int | None
    message: str | None
    fix: str | None
    instructions: str | None
    seen: list[SeenValue]
    more: int
    exempt: str | None


async def page(
    visit: PageContext, check: Check, wanted: ResultFilter, limit: int, number: int | None
) -> tuple[list[ResultRow], str | None]:
    """Up to `limit` results by reference, and the reference that the next page begins after.

    `number` is that of all of them, if it is counted.
    """
    after = visit.query("cursor")
    if "\0" in after:
        raise InputError("The address of this page is incomplete.")
    asked = (visit.state.database, check.id, wanted, limit + 1, after)
    if number is None:
        found = await result_queries.list_check_rows(*asked)
    else:
        found = await result_queries.count_check_rows(*asked, number)
    rows = await shown(visit, check, found[:limit])
    return rows, found[limit - 1].ref if len(found) > limit else None


async def of_entity(visit: PageContext, check: Check, entity: str) -> list[ResultRow]:
    """The result of one entity; raises InputError for what is no reference."""
    ref = str(refs.parse_ref(entity))
    found = await result_queries.read_entity_results(
        visit.state.database, ref, visit.now, only=[check.id], explained=()
    )
    if found is None or not found.results:
        return []
    [result] = found.results
    row = CheckedRow(found.ref, found.entity_id, found.owner, result.state)
    return await shown(visit, check, [row])


async def shown(visit: PageContext, check: Check, found: Sequence[CheckedRow]) -> list[ResultRow]:
    """The rows with what each rests on, if the person may read values of facts."""
    database, person, reads = visit.state.database, visit.person.ref, visit.may(SOURCE_READ)
    explained = await result_queries.explain_rows(database, check, found, visit.now)
    groups = await people_trust.read_groups(database, person, visit.state.trust)
    actor = ExemptionActor(person, groups, may_request=visit.may(EXEMPTION_REQUEST))
    return [_row(check, one, actor, reads=reads) for one in explained]


def _row(check: Check, one: ExplainedRow, actor: ExemptionActor, *, reads: bool) -> ResultRow:
    word, told = state.name_state(one.row.state), one.explanation if reads else None
    asks = None
    if word in {"fail", "unknown"} and exemption_store.may_request_exemption(
        actor, [one.row.owner]
    ):
        asks = f"/exemptions/-/new?check={segment(check.id)}&entity={segment(one.row.ref)}"
    seen = [_seen(each, one.row.ref) for each in _open(told)]
    return ResultRow(
        one.row.ref,
        one.title or formats.short_ref(one.row.ref),
        one.row.owner,
        word,
        one.since,
        told.message if told else None,
        _address(told.fix_link) if told else None,
        told.fix_instructions if told else None,
        seen[:_MOST_SEEN],
        max(0, len(seen) - _MOST_SEEN),
        asks,
    )


def _open(told: Explanation | None) -> list[Evidence]:
    """The comparisons that a result rests on; of one that does not pass, those that do not."""
    if told is None:
        return []
    if told.state == state.PASS:
        return told.because
    return [one for one in told.because if one.state != state.PASS] or told.because


def _seen(one: Evidence, ref: str) -> SeenValue:
    leaf = one.leaf
    path = None
    if leaf.fact.source == CHECKS:
        path = shares.check_path(leaf.fact.fact, entity=ref)
    elif leaf.fact.source != ENTITY:
        place = f"{segment(leaf.fact.source)}/{segment(leaf.fact.fact)}"
        path = f"{formats.entity_path(ref)}/facts/{place}"
    return SeenValue(
        language.describe_rule(leaf).removesuffix("."),
        state.name_state(one.state),
        path,
        None if one.value is None else _brief(one.value),
        one.collected_at,
        one.reason and fact_display.explain_check_reason(one.reason).short,
        one.stale,
    )


def _brief(value: Any) -> str:
    text = formats.word_of(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _address(link: str | None) -> str | None:
    """The address of a fix if a page may link it: of the web, or of a mail."""
    if link is not None and link.lower().startswith("mailto:"):
        return link
    return formats.external(link)


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
    database, owners = visit.state.database, await owner_choices(visit)
    counts = await _counts(visit, check.id, owners)
    address = filter_address(visit, shares.check_path(check.id), (*_FILTERS, "cursor"))
    word = state_asked(visit) or _first_state(counts)
    rows, more = await _rows(visit, check, word, owners, counts)
    query = {name: address.query[name] for name in ("owner", "team") if name in address.query}
    return visit.page(
        "check.html",
        stored=stored,
        check=check,
        newest=stored.newest,
        sentence=language.describe_rule(check.rule),
        when=language.describe_rule(check.applicable_when) if check.applicable_when else None,
        about=_about(stored),
        on_unknown=None if check.on_unknown == UNKNOWN else state.name_state(check.on_unknown),
        figures=ResultFigures(counts),
        states=shares.of_states(check.id, counts, **query),
        word=word,
        age=await result_queries.read_age_of_checks(database, [check.id], visit.now),
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
    word = state_asked(visit)
    wanted = ResultFilter([word] if word else [], await owner_choices(visit))

    async def lines() -> Any:
        yield csv_lines.line(("entity", "owner", "state", "stale")).encode()
        async for found in result_queries.read_result_pages(
            visit.state.database, [check.id], wanted
        ):
            rows = (
                (row.ref, row.owner, state.name_state(row.state), csv_lines.plain_cell(row.stale))
                for _, row in found
            )
            yield "".join(map(csv_lines.line, rows)).encode()

    headers = csv_lines.attachment(check.id)
    return Reply(lines(), headers=headers, content_type=csv_lines.CONTENT_TYPE)


async def of_address(visit: PageContext) -> tuple[StoredCheck, Check]:
    """The check in the address; raises NotFoundError, also if this release cannot read it."""
    id_ = definition_id(visit, NOUN)
    stored = await check_store.existing(visit.state.database, id_)
    check = read(stored)
    if check is None:
        raise NotFoundError(f"The check {id_} was made by another release, which reads it.")
    return stored, check


async def _counts(visit: PageContext, check_id: str, owners: Sequence[str]) -> StateCounts:
    found = await state_store.count_by_owner(visit.state.database, check_id)
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
) -> tuple[list[ResultRow], str | None]:
    if entity := visit.query("entity"):
        return await of_entity(visit, check, entity), None
    # Entities that a check is not about are not counted.
    counted = dict(zip(shares.KINDS, counts, strict=True))
    number = None if word == "not-applicable" else counted[word]
    if number == 0:
        return [], None
    return await page(visit, check, ResultFilter([word], owners), _ROWS, number)


def _about(stored: StoredCheck) -> str | None:
    found = stored.current.get("appliesTo")
    return yaml_text.write_yaml({"appliesTo": found}) if found else None


async def _chart(visit: PageContext, stored: StoredCheck) -> Any:
    """Entities that fail, day by day."""
    if stored.slot is None:
        return None
    now = visit.now
    first, today = now // DAY - _DAYS, now // DAY
    found = await state_store.read_day_totals(visit.state.database, stored.id, first, today - 1)
    totals = await state_store.count_totals(visit.state.database)
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
    found = await state_store.list_latest_changes(visit.state.database, check_id, _CHANGES)
    names = await stored_entities.read_refs_of_ids(
        visit.state.database, {one.entity_id for one in found}
    )
    return [
        ChangedResult(
            names.get(one.entity_id),
            one.at,
            state.name_state(one.before),
            state.name_state(one.after),
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
