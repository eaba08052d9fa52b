"""Check pages: the list, each check with its rule, results and history, and exemptions."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
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
from factbook.checks.definitions import (
    definition_versions,
    definition_writes,
    exemption_store,
    scorecard,
)
from factbook.checks.definitions.definition_versions import (
    StagedDefinition,
    StoredCheck,
    StoredScorecard,
    check_store,
    scorecard_store,
)
from factbook.checks.definitions.definition_writes import ExemptionCaller
from factbook.checks.definitions.exemption_store import (
    EXEMPTION_STATES,
    Decision,
    Exemption,
    ExemptionActor,
    ExemptionFilter,
)
from factbook.checks.definitions.scorecard import Scorecard
from factbook.checks.results import result_queries, state_store
from factbook.checks.results.grader import GroupHierarchy
from factbook.checks.results.result_queries import CheckedRow, ExplainedRow, ResultFilter
from factbook.checks.results.state_store import StateCounts
from factbook.checks.rules import language
from factbook.checks.rules.check_definition import Check, parse_stored_check
from factbook.checks.rules.language import CHECKS, ENTITY
from factbook.checks.rules.rule_evaluation import Evidence, Explanation
from factbook.checks.state import UNKNOWN
from factbook.clock import DAY, iso
from factbook.datasources.custom import yaml_text
from factbook.datasources.fact_columns import NO_VALUE
from factbook.errors import FactbookError, InputError, NotFoundError
from factbook.http.csv_lines import (
    CONTENT_TYPE,
    make_attachment_headers,
    render_csv_line,
    render_plain_cell,
)
from factbook.http.requests import Reply
from factbook.schemas import common
from factbook.web import formats, shares
from factbook.web.charts import Point, draw_line_chart
from factbook.web.formats import quote_segment
from factbook.web.pages import PageContext, PageRoute
from factbook.web.shares import ResultFigures, make_filter_address


async def may_write_definition(visit: PageContext, stored: StagedDefinition, needed: str) -> bool:
    """True if the person has the permission, or one of their groups owns the definition."""
    if not visit.may_own(needed):
        return visit.may(needed)
    found = definition_writes.list_staged_owners(stored)
    groups = await people_trust.read_groups(
        visit.state.database, visit.person.ref, visit.state.trust
    )
    return bool(found) and found <= groups


def may_create_definition(visit: PageContext, needed: str) -> bool:
    """True if the person has the permission, or can create definitions for their own groups."""
    return visit.may(needed) or visit.may_own(needed)


STATE_CHOICES: Final = [
    ("", "Any"),
    *((word, word.replace("-", " ").capitalize()) for word in state.WORDS),
]


def get_definition_id(visit: PageContext, noun: str) -> str:
    """Read the id from the URL; raises NotFoundError if it isn't a valid id."""
    text = visit.request.parameter("id")
    if not re.fullmatch(common.SOURCE_ID, text):
        raise NotFoundError(f"There is no {noun} with this name.")
    return text


def find_chosen_team(visit: PageContext) -> str | None:
    """Read the `team` filter; raises InputError if it isn't a valid reference."""
    text = visit.query("team")
    return refs.canonicalize_ref(text, kind="group") if text else None


async def list_chosen_owners(visit: PageContext) -> Sequence[str]:
    """List the owners to filter by: one owner, or a team and its subteams; empty means all.

    Raises InputError for an invalid reference.
    """
    group, owner = find_chosen_team(visit), visit.query("owner")
    if group is not None:
        tree = GroupHierarchy(await related_entities.read_group_parents(visit.state.database))
        return sorted(tree.within(group))
    if owner == NO_VALUE:
        return [""]
    return [refs.canonicalize_ref(owner, kind="group")] if owner else []


def get_chosen_state(visit: PageContext) -> str | None:
    """Read the `state` filter; raises InputError if there is no such state."""
    word = visit.query("state") or None
    if word is not None and word not in state.WORDS:
        raise InputError(f"A result is {', '.join(state.WORDS)}.")
    return word


CHECKS_PATH: Final = "/checks"
_CHECKS_ON_PAGE: Final = 50
_CHECK_FILTERS: Final = (
    ("", "All"),
    ("failing", "Failing somewhere"),
    ("unknown", "Unknown somewhere"),
    ("draft", "With a draft"),
)


class CheckLine(NamedTuple):
    """A row in the check list; `check` is None if this release cannot read the check."""

    stored: StoredCheck
    check: Check | None
    sentence: str
    figures: ResultFigures


async def list_checks(visit: PageContext) -> Reply:
    """Show the check list."""
    database = visit.state.database
    counts = await state_store.count_totals(database)
    stored = await check_store.everything(database)
    query, shown = visit.query("q"), visit.query("show")
    found = [
        one
        for one in stored
        if _matches_check_filter(one, counts.get(one.id), query.casefold(), shown)
    ]
    found.sort(key=lambda one: (-counts.get(one.id, StateCounts()).failing, one.id))
    number = visit.page_number()
    address = make_filter_address(visit, CHECKS_PATH, ("q", "show"))
    page = found[(number - 1) * _CHECKS_ON_PAGE : number * _CHECKS_ON_PAGE]
    rows = list[CheckLine]()
    for listed in page:
        check = read_current_check(listed)
        rule = language.describe_rule(check.rule) if check else ""
        figures = ResultFigures(counts.get(listed.id, StateCounts()))
        rows.append(CheckLine(listed, check, rule, figures))
    return visit.page(
        "checks.html",
        rows=rows,
        number=len(stored),
        age=await result_queries.read_age_of_checks(database, [one.id for one in page], visit.now),
        found=len(found),
        query=query,
        show=shown if shown in dict(_CHECK_FILTERS) else "",
        choices=_CHECK_FILTERS,
        before=address.to(page=str(number - 1)) if number > 1 else None,
        after=address.to(page=str(number + 1)) if number * _CHECKS_ON_PAGE < len(found) else None,
        may_write=may_create_definition(visit, CHECK_WRITE),
    )


def read_current_check(stored: StoredCheck) -> Check | None:
    """Parse the published check, or else its draft; None if this release cannot read it."""
    try:
        return parse_stored_check(stored.current)
    except FactbookError:
        return None


def read_current_scorecard(stored: StoredScorecard) -> Scorecard | None:
    """Parse the published scorecard, or else its draft; None if this release cannot read it."""
    try:
        return scorecard.parse_scorecard(stored.current)
    except FactbookError:
        return None


def _matches_check_filter(
    stored: StoredCheck, counts: StateCounts | None, text: str, shown: str
) -> bool:
    names = (stored.id, stored.title, str(stored.current.get("owner", "")))
    if not any(text in name.casefold() for name in names):
        return False
    match shown:
        case "failing":
            return counts is not None and counts.failing > 0
        case "unknown":
            return counts is not None and counts.undecided > 0
        case "draft":
            return stored.draft is not None
    return True


CHECK_LIST: Sequence[PageRoute] = (
    PageRoute("GET", CHECKS_PATH, list_checks, (CATALOG_READ, CHECK_READ)),
)


_LONGEST: Final = 120
_MOST_SEEN: Final = 6


class SeenValue(NamedTuple):
    """One comparison of a rule: the value with its time, or the reason it is missing."""

    words: str
    word: str
    path: str | None
    value: str | None
    at: int | None
    reason: str | None
    stale: bool


class ResultRow(NamedTuple):
    """An entity and its result; `fix` is a URL that is safe to link, or None."""

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


async def list_result_rows(
    visit: PageContext, check: Check, wanted: ResultFilter, limit: int, number: int | None
) -> tuple[list[ResultRow], str | None]:
    """List up to `limit` results by reference, and the cursor for the next page.

    `number` is the total number of results, if known.
    """
    after = visit.query("cursor")
    if "\0" in after:
        raise InputError("The address of this page is incomplete.")
    asked = (visit.state.database, check.id, wanted, limit + 1, after)
    if number is None:
        found = await result_queries.list_check_rows(*asked)
    else:
        found = await result_queries.count_check_rows(*asked, number)
    rows = await explain_result_rows(visit, check, found[:limit])
    return rows, found[limit - 1].ref if len(found) > limit else None


async def list_entity_results(visit: PageContext, check: Check, entity: str) -> list[ResultRow]:
    """The result of one entity, if any; raises InputError for an invalid reference."""
    ref = str(refs.parse_ref(entity))
    found = await result_queries.read_entity_results(
        visit.state.database, ref, visit.now, only=[check.id], explained=()
    )
    if found is None or not found.results:
        return []
    [result] = found.results
    row = CheckedRow(found.ref, found.entity_id, found.owner, result.state)
    return await explain_result_rows(visit, check, [row])


async def explain_result_rows(
    visit: PageContext, check: Check, found: Sequence[CheckedRow]
) -> list[ResultRow]:
    """Add the evidence to each result if the person may read fact values."""
    database, person, reads = visit.state.database, visit.person.ref, visit.may(SOURCE_READ)
    explained = await result_queries.explain_rows(database, check, found, visit.now)
    groups = await people_trust.read_groups(database, person, visit.state.trust)
    actor = ExemptionActor(person, groups, may_request=visit.may(EXEMPTION_REQUEST))
    return [_make_result_row(check, one, actor, reads=reads) for one in explained]


def _make_result_row(
    check: Check, one: ExplainedRow, actor: ExemptionActor, *, reads: bool
) -> ResultRow:
    word, explanation = state.name_state(one.row.state), one.explanation if reads else None
    asks = None
    if word in {"fail", "unknown"} and exemption_store.may_request_exemption(
        actor, [one.row.owner]
    ):
        asks = (
            f"/exemptions/-/new?check={quote_segment(check.id)}&entity={quote_segment(one.row.ref)}"
        )
    seen = [_make_seen_value(each, one.row.ref) for each in _list_open_evidence(explanation)]
    fix_link = explanation.fix_link if explanation else None
    # Only web and mailto links are safe to render.
    if fix_link is not None and not fix_link.lower().startswith("mailto:"):
        fix_link = formats.get_external_url(fix_link)
    return ResultRow(
        one.row.ref,
        one.title or formats.shorten_ref(one.row.ref),
        one.row.owner,
        word,
        one.since,
        explanation.message if explanation else None,
        fix_link,
        explanation.fix_instructions if explanation else None,
        seen[:_MOST_SEEN],
        max(0, len(seen) - _MOST_SEEN),
        asks,
    )


def _list_open_evidence(told: Explanation | None) -> list[Evidence]:
    """The comparisons behind a result; only the non-passing ones if the result doesn't pass."""
    if told is None:
        return []
    if told.state == state.PASS:
        return told.because
    return [one for one in told.because if one.state != state.PASS] or told.because


def _make_seen_value(one: Evidence, ref: str) -> SeenValue:
    leaf = one.leaf
    path = None
    if leaf.fact.source == CHECKS:
        path = shares.make_check_path(leaf.fact.fact, entity=ref)
    elif leaf.fact.source != ENTITY:
        place = f"{quote_segment(leaf.fact.source)}/{quote_segment(leaf.fact.fact)}"
        path = f"{formats.make_entity_path(ref)}/facts/{place}"
    value = None if one.value is None else formats.format_word(one.value)
    if value is not None and len(value) > _LONGEST:
        value = f"{value[:_LONGEST]}…"
    return SeenValue(
        language.describe_rule(leaf).removesuffix("."),
        state.name_state(one.state),
        path,
        value,
        one.collected_at,
        one.reason and formats.explain_check_reason(one.reason).short,
        one.stale,
    )


_RESULTS_ON_PAGE: Final = 25
_CHART_DAYS: Final = 90
_CHANGES: Final = 10
_VERSIONS: Final = 10
_RESULT_FILTERS: Final = ("owner", "team", "state", "entity")


class ChangedResult(NamedTuple):
    """A changed result; `ref` is None if the entity was deleted."""

    ref: str | None
    at: int
    before: str
    after: str


class CheckUse(NamedTuple):
    """A scorecard that includes the check, and the title of the check's level, or ''."""

    id: str
    title: str
    level: str


async def show_check(visit: PageContext) -> Reply:
    """Show the check page."""
    stored, check = await find_opened_check(visit)
    database, owners = visit.state.database, await list_chosen_owners(visit)
    counts = await _count_check_states(visit, check.id, owners)
    address = make_filter_address(
        visit, shares.make_check_path(check.id), (*_RESULT_FILTERS, "cursor")
    )
    # Show the worst state by default.
    first = "fail" if counts.failing else "unknown" if counts.undecided else "pass"
    word = get_chosen_state(visit) or first
    rows, more = await _list_check_rows(visit, check, word, owners, counts)
    query = {name: address.query[name] for name in ("owner", "team") if name in address.query}
    applies_to = stored.current.get("appliesTo")
    return visit.page(
        "check.html",
        stored=stored,
        check=check,
        newest=stored.newest,
        sentence=language.describe_rule(check.rule),
        when=language.describe_rule(check.applicable_when) if check.applicable_when else None,
        about=yaml_text.write_yaml({"appliesTo": applies_to}) if applies_to else None,
        on_unknown=None if check.on_unknown == UNKNOWN else state.name_state(check.on_unknown),
        figures=ResultFigures(counts),
        states=shares.make_state_shares(check.id, counts, **query),
        word=word,
        age=await result_queries.read_age_of_checks(database, [check.id], visit.now),
        rows=rows,
        address=address,
        chosen=[(name, address.query[name]) for name in _RESULT_FILTERS if name in address.query],
        first=address.to() if "cursor" in address.query else None,
        more=address.to(cursor=more) if more else None,
        export=address._replace(path=f"{shares.make_check_path(check.id)}/export").to(entity=None),
        is_part=bool(owners),
        chart=await _draw_failing_chart(visit, stored),
        changes=await _list_changed_results(visit, check.id),
        versions=(await check_store.versions(database, check.id))[:_VERSIONS],
        uses=await _list_check_uses(visit, check.id),
        may_write=await may_write_definition(visit, stored, CHECK_WRITE),
    )


async def download_check_results(visit: PageContext) -> Reply:
    """Download the results of a check as CSV."""
    _, check = await find_opened_check(visit)
    word = get_chosen_state(visit)
    wanted = ResultFilter([word] if word else [], await list_chosen_owners(visit))

    async def lines() -> Any:
        yield render_csv_line(("entity", "owner", "state", "stale")).encode()
        async for found in result_queries.read_result_pages(
            visit.state.database, [check.id], wanted
        ):
            rows = (
                (row.ref, row.owner, state.name_state(row.state), render_plain_cell(row.stale))
                for _, row in found
            )
            yield "".join(map(render_csv_line, rows)).encode()

    headers = make_attachment_headers(check.id)
    return Reply(lines(), headers=headers, content_type=CONTENT_TYPE)


async def find_opened_check(visit: PageContext) -> tuple[StoredCheck, Check]:
    """Find the check in the URL; raises NotFoundError if missing or unreadable by this release."""
    id_ = get_definition_id(visit, "check")
    stored = await check_store.existing(visit.state.database, id_)
    check = read_current_check(stored)
    if check is None:
        raise NotFoundError(
            f"The check {id_} was written by another release, and this one cannot read it."
        )
    return stored, check


async def _count_check_states(
    visit: PageContext, check_id: str, owners: Sequence[str]
) -> StateCounts:
    found = await state_store.count_by_owner(visit.state.database, check_id)
    chosen = [found.get(one, StateCounts()) for one in owners] if owners else found.values()
    total = StateCounts()
    for one in chosen:
        total = total.plus(one)
    return total


async def _list_check_rows(
    visit: PageContext, check: Check, word: str, owners: Sequence[str], counts: StateCounts
) -> tuple[list[ResultRow], str | None]:
    if entity := visit.query("entity"):
        return await list_entity_results(visit, check, entity), None
    # Entities that a check does not apply to have no count.
    counted = dict(zip(shares.STATE_KINDS, counts, strict=True))
    number = None if word == "not-applicable" else counted[word]
    if number == 0:
        return [], None
    return await list_result_rows(
        visit, check, ResultFilter([word], owners), _RESULTS_ON_PAGE, number
    )


async def _draw_failing_chart(visit: PageContext, stored: StoredCheck) -> Any:
    if stored.slot is None:
        return None
    now = visit.now
    first, today = now // DAY - _CHART_DAYS, now // DAY
    found = await state_store.read_day_totals(visit.state.database, stored.id, first, today - 1)
    totals = await state_store.count_totals(visit.state.database)
    # Skip the days before counting started.
    kept = list(dropwhile(lambda one: not any(one.counts), found))
    points: list[Point] = [(one.day * DAY, one.counts.failing) for one in kept]
    current = totals.get(stored.id, StateCounts())
    points.append((now, current.failing))
    counted = [(one.day * DAY, one.counts) for one in kept] + [(now, current)]
    notes = {at: f"of {sum(one) - one.inapplicable:,}" for at, one in counted}
    return draw_line_chart(
        points,
        title="Failing entities",
        unit="",
        start=first * DAY,
        end=now,
        notes=notes,
        ident="failing",
    )


async def _list_changed_results(visit: PageContext, check_id: str) -> list[ChangedResult]:
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


async def _list_check_uses(visit: PageContext, check_id: str) -> list[CheckUse]:
    found = []
    for stored in await scorecard_store.everything(visit.state.database):
        card = read_current_scorecard(stored)
        entries = card.entries if card else ()
        for entry in entries:
            if card and entry.check == check_id:
                titles: Mapping[str, str] = dict(card.levels)
                found.append(CheckUse(card.id, card.title, titles.get(entry.level or "", "")))
    return found


_NEEDS: Final = (CATALOG_READ, CHECK_READ)

CHECK_PAGE: Sequence[PageRoute] = (
    PageRoute("GET", "/checks/{id}", show_check, _NEEDS),
    PageRoute("GET", "/checks/{id}/export", download_check_results, _NEEDS),
)


EXEMPTIONS_PATH: Final = "/exemptions"
_NEW_EXEMPTION_PATH: Final = f"{EXEMPTIONS_PATH}/-/new"
_EXEMPTIONS_ON_PAGE: Final = 25
_USUAL_EXEMPTION_DAYS: Final = 90
_EXEMPTION_FIELDS: Final = ("check", "scorecard", "entity", "reason", "link", "until")
_DECISIONS: Final[Mapping[str, tuple[Decision, ...]]] = {
    "requested": ("approve", "deny"),
    "approved": ("revoke",),
}
_DECISION_WORDS: Final = {"approve": "approved", "deny": "denied", "revoke": "revoked"}


class _Definitions(NamedTuple):
    checks: Mapping[str, StoredCheck]
    scorecards: Mapping[str, StoredScorecard]


class ExemptionRow(NamedTuple):
    """An exemption, a link to its check or scorecard, and the decisions the person may make."""

    exemption: Exemption
    subject: str
    path: str
    holds: bool
    link: str | None
    decisions: Sequence[Decision]
    is_own: bool


async def show_exemptions(visit: PageContext) -> Reply:
    """Show the exemptions in one state, newest first."""
    state = visit.query("state") or EXEMPTION_STATES[0]
    if state not in EXEMPTION_STATES:
        raise InputError(f"An exemption is {', '.join(EXEMPTION_STATES)}.")
    wanted = ExemptionFilter(state)
    after = _split_exemption_cursor(visit.query("cursor"))
    found = await exemption_store.list_exemptions(
        visit.state.database, wanted, _EXEMPTIONS_ON_PAGE + 1, after
    )
    page = found[:_EXEMPTIONS_ON_PAGE]
    people = [one.requested_by for one in page] + [one.decided_by or "" for one in page]
    path = f"{EXEMPTIONS_PATH}?state={state}"
    more = (
        f"{path}&cursor={page[-1].requested_at}-{page[-1].id}"
        if len(found) > _EXEMPTIONS_ON_PAGE
        else None
    )
    person, trust = visit.person.ref, visit.state.trust
    groups = await people_trust.read_groups(visit.state.database, person, trust)
    return visit.page(
        "exemptions.html",
        may_ask=visit.may(EXEMPTION_REQUEST) or bool(groups),
        state=state,
        states=EXEMPTION_STATES,
        rows=await _list_exemption_rows(visit, page, groups),
        known=await visit.known(people),
        first=path if after else None,
        more=more,
    )


async def begin_exemption(visit: PageContext) -> Reply:
    """Show the form to request an exemption."""
    given = {name: visit.query(name) for name in _EXEMPTION_FIELDS}
    days = min(_USUAL_EXEMPTION_DAYS, visit.state.settings.exemption_days)
    # The exemption includes its last day.
    given["until"] = iso(visit.now + (days - 1) * DAY)[:10]
    return _show_exemption_form(visit, given, [])


async def ask_for_exemption(visit: PageContext) -> Reply:
    """Request an exemption."""
    given, now = {name: visit.sent.one(name) for name in _EXEMPTION_FIELDS}, visit.now
    write = visit.writing(definition_writes.audit_exemption("exemption.request"))
    try:
        wanted = exemption_store.parse_exemption_request(
            {name: text for name, text in given.items() if text}, now
        )
        caller = _make_exemption_caller(visit)
        usual = visit.state.settings.exemption_days
        await write(
            partial(
                definition_writes.request_exemption,
                wanted=wanted,
                caller=caller,
                now=now,
                usual_days=usual,
            )
        )
    except FactbookError as error:
        if error.status >= 500:
            raise
        return _show_exemption_form(visit, given, error.problem_list, error.status)
    return visit.redirect(
        EXEMPTIONS_PATH, "The exemption was requested. It takes effect once it is approved."
    )


async def _submit_decision(visit: PageContext, decision: Decision) -> Reply:
    id_ = visit.request.parameter("id")
    if not (id_.isascii() and id_.isalnum()):
        raise NotFoundError("There is no such exemption.")
    work = partial(
        definition_writes.decide_exemption,
        exemption_id=id_,
        decision=decision,
        caller=_make_exemption_caller(visit),
        now=visit.now,
        comment=visit.sent.one("comment") or None,
        own=visit.state.settings.exemption_self_approval,
        usual_days=visit.state.settings.exemption_days,
    )
    done = await visit.writing(definition_writes.audit_exemption(f"exemption.{decision}"))(work)
    entity = formats.shorten_ref(done.entity)
    return visit.redirect(
        EXEMPTIONS_PATH, f"The exemption of {entity} is {_DECISION_WORDS[decision]}."
    )


async def submit_approval(visit: PageContext) -> Reply:
    """Approve a requested exemption."""
    return await _submit_decision(visit, "approve")


async def submit_denial(visit: PageContext) -> Reply:
    """Deny a requested exemption."""
    return await _submit_decision(visit, "deny")


async def submit_revocation(visit: PageContext) -> Reply:
    """Revoke an exemption; the check counts again immediately."""
    return await _submit_decision(visit, "revoke")


def _show_exemption_form(
    visit: PageContext,
    given: Mapping[str, str],
    problems: Sequence[Mapping[str, str]],
    status: int = 200,
) -> Reply:
    fields = {
        one["path"]: one["message"]
        for one in reversed(problems)
        if one["path"] in _EXEMPTION_FIELDS
    }
    return visit.page(
        "exemption-new.html",
        status,
        given=given,
        problems=[one for one in problems if one["path"] not in fields],
        wrong={name: fields.get(name, "") for name in _EXEMPTION_FIELDS},
    )


async def _list_exemption_rows(
    visit: PageContext, found: Sequence[Exemption], groups: frozenset[str]
) -> list[ExemptionRow]:
    database = visit.state.database
    definitions = _Definitions(
        {one.id: one for one in await check_store.everything(database)},
        {one.id: one for one in await scorecard_store.everything(database)},
    )
    return [_make_exemption_row(visit, one, definitions, groups) for one in found]


def _make_exemption_row(
    visit: PageContext, one: Exemption, definitions: _Definitions, groups: frozenset[str]
) -> ExemptionRow:
    of_check = one.check is not None
    decisions = _DECISIONS.get(one.state, ())
    is_own = one.requested_by == visit.person.ref and one.state == "requested"
    is_own = is_own and not visit.state.settings.exemption_self_approval
    if not _may_decide(visit, one, definitions, groups):
        decisions = ()
    elif is_own:
        decisions = tuple(each for each in decisions if each != "approve")
    subject = one.check or one.scorecard or ""
    path = shares.make_check_path(subject, entity=one.entity) if of_check else ""
    return ExemptionRow(
        one,
        subject,
        path or shares.make_scorecard_path(subject),
        one.holds(visit.now),
        formats.get_external_url(one.link),
        decisions,
        is_own,
    )


def _may_decide(
    visit: PageContext, one: Exemption, definitions: _Definitions, groups: frozenset[str]
) -> bool:
    subject: StagedDefinition | None
    cards = list(definitions.scorecards.values())
    if one.check is not None:
        subject = definitions.checks.get(one.check)
        named = set(definition_versions.list_naming(cards, [one.check]))
        cards = [card for card in cards if card.id in named]
    else:
        subject = definitions.scorecards.get(one.scorecard or "")
        cards = [card for card in cards if card is subject]
    if subject is None:
        return False
    try:
        rules = definition_writes.list_counting_rules(subject, cards)
    except FactbookError:  # from another release, unreadable by this one
        return False
    actor = definition_writes.make_exemption_actor(_make_exemption_caller(visit), groups, subject)
    return exemption_store.may_decide_exemption(actor, rules)


def _make_exemption_caller(visit: PageContext) -> ExemptionCaller:
    return ExemptionCaller(visit.person.ref, visit.person.permissions, visit.state.trust)


def _split_exemption_cursor(text: str) -> tuple[int, str] | None:
    if not text:
        return None
    at, _, id_ = text.partition("-")
    if not (at.isascii() and at.isdigit() and len(at) < 16 and id_.isascii() and id_.isalnum()):
        raise InputError("The address of this page is incomplete.")
    return int(at), id_


# Groups named in scorecards decide without the permission, so these routes don't require it.
EXEMPTIONS: Sequence[PageRoute] = (
    PageRoute("GET", EXEMPTIONS_PATH, show_exemptions, _NEEDS),
    PageRoute("GET", _NEW_EXEMPTION_PATH, begin_exemption, _NEEDS),
    PageRoute("POST", _NEW_EXEMPTION_PATH, ask_for_exemption, _NEEDS),
    PageRoute("POST", f"{EXEMPTIONS_PATH}/{{id}}/approve", submit_approval, _NEEDS),
    PageRoute("POST", f"{EXEMPTIONS_PATH}/{{id}}/deny", submit_denial, _NEEDS),
    PageRoute("POST", f"{EXEMPTIONS_PATH}/{{id}}/revoke", submit_revocation, _NEEDS),
)
