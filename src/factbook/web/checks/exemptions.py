"""Pages of exemptions: the queue with its decisions, and the form to ask for one."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from factbook.auth.permissions import CATALOG_READ, CHECK_READ, EXEMPTION_REQUEST
from factbook.catalog import people_trust
from factbook.checks.definitions import definition_versions, definition_writes, exemption_store
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
    ExemptionFilter,
)
from factbook.clock import DAY, iso
from factbook.errors import FactbookError, InputError, NotFoundError
from factbook.http.requests import Reply
from factbook.web.checks import shares
from factbook.web.site import formats
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

PATH: Final = "/exemptions"
_NEW: Final = f"{PATH}/-/new"
_ROWS: Final = 25
_USUAL_DAYS: Final = 90
_FIELDS: Final = ("check", "scorecard", "entity", "reason", "link", "until")
_DECISIONS: Final[Mapping[str, tuple[Decision, ...]]] = {
    "requested": ("approve", "deny"),
    "approved": ("revoke",),
}
_DONE: Final = {"approve": "approved", "deny": "denied", "revoke": "revoked"}


class _Definitions(NamedTuple):
    """All checks and scorecards by their ids."""

    checks: Mapping[str, StoredCheck]
    scorecards: Mapping[str, StoredScorecard]


class ExemptionRow(NamedTuple):
    """An exemption with the page of what it is from, and what the person may decide on it."""

    exemption: Exemption
    subject: str
    path: str
    holds: bool
    link: str | None
    decisions: Sequence[Decision]
    is_own: bool


async def show(visit: PageContext) -> Reply:
    """Page of the exemptions in one state, newest first."""
    state = visit.query("state") or EXEMPTION_STATES[0]
    if state not in EXEMPTION_STATES:
        raise InputError(f"An exemption is {', '.join(EXEMPTION_STATES)}.")
    wanted = ExemptionFilter(state)
    after = _place(visit.query("cursor"))
    found = await exemption_store.list_exemptions(visit.state.database, wanted, _ROWS + 1, after)
    page = found[:_ROWS]
    people = [one.requested_by for one in page] + [one.decided_by or "" for one in page]
    path = f"{PATH}?state={state}"
    more = f"{path}&cursor={page[-1].requested_at}-{page[-1].id}" if len(found) > _ROWS else None
    person, trust = visit.person.ref, visit.state.trust
    groups = await people_trust.read_groups(visit.state.database, person, trust)
    return visit.page(
        "exemptions.html",
        may_ask=visit.may(EXEMPTION_REQUEST) or bool(groups),
        state=state,
        states=EXEMPTION_STATES,
        rows=await _rows(visit, page, groups),
        known=await visit.known(people),
        first=path if after else None,
        more=more,
    )


async def begin(visit: PageContext) -> Reply:
    """Form to ask for an exemption."""
    given = {name: visit.query(name) for name in _FIELDS}
    days = min(_USUAL_DAYS, visit.state.settings.exemption_days)
    # The day is part of it.
    given["until"] = iso(visit.now + (days - 1) * DAY)[:10]
    return _form(visit, given, [])


async def ask(visit: PageContext) -> Reply:
    """Ask for an exemption."""
    given, now = {name: visit.sent.one(name) for name in _FIELDS}, visit.now
    write = visit.writing(definition_writes.audit_exemption("exemption.request"))
    try:
        wanted = exemption_store.parse_exemption_request(
            {name: text for name, text in given.items() if text}, now
        )
        caller = _caller(visit)
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
        return _form(visit, given, error.problem_list, error.status)
    return visit.redirect(PATH, "The exemption is asked for. It holds once it is approved.")


async def _decide(visit: PageContext, decision: Decision) -> Reply:
    work = partial(
        definition_writes.decide_exemption,
        exemption_id=_id(visit),
        decision=decision,
        caller=_caller(visit),
        now=visit.now,
        comment=visit.sent.one("comment") or None,
        own=visit.state.settings.exemption_self_approval,
        usual_days=visit.state.settings.exemption_days,
    )
    done = await visit.writing(definition_writes.audit_exemption(f"exemption.{decision}"))(work)
    entity = formats.short_ref(done.entity)
    return visit.redirect(PATH, f"The exemption of {entity} is {_DONE[decision]}.")


async def approve(visit: PageContext) -> Reply:
    """Approve a request."""
    return await _decide(visit, "approve")


async def deny(visit: PageContext) -> Reply:
    """Deny a request."""
    return await _decide(visit, "deny")


async def revoke(visit: PageContext) -> Reply:
    """Revoke an exemption; the check counts again at once."""
    return await _decide(visit, "revoke")


def _form(
    visit: PageContext,
    given: Mapping[str, str],
    problems: Sequence[Mapping[str, str]],
    status: int = 200,
) -> Reply:
    fields = {one["path"]: one["message"] for one in reversed(problems) if one["path"] in _FIELDS}
    return visit.page(
        "exemption-new.html",
        status,
        given=given,
        problems=[one for one in problems if one["path"] not in fields],
        wrong={name: fields.get(name, "") for name in _FIELDS},
    )


async def _rows(
    visit: PageContext, found: Sequence[Exemption], groups: frozenset[str]
) -> list[ExemptionRow]:
    database = visit.state.database
    definitions = _Definitions(
        {one.id: one for one in await check_store.everything(database)},
        {one.id: one for one in await scorecard_store.everything(database)},
    )
    return [_row(visit, one, definitions, groups) for one in found]


def _row(
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
    path = shares.check_path(subject, entity=one.entity) if of_check else ""
    return ExemptionRow(
        one,
        subject,
        path or shares.scorecard_path(subject),
        one.holds(visit.now),
        formats.external(one.link),
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
    except FactbookError:  # of another release, which this one cannot read
        return False
    actor = definition_writes.make_exemption_actor(_caller(visit), groups, subject)
    return exemption_store.may_decide_exemption(actor, rules)


def _caller(visit: PageContext) -> ExemptionCaller:
    return ExemptionCaller(visit.person.ref, visit.person.permissions, visit.state.trust)


def _id(visit: PageContext) -> str:
    text = visit.request.parameter("id")
    if not (text.isascii() and text.isalnum()):
        raise NotFoundError("There is no such exemption.")
    return text


def _place(text: str) -> tuple[int, str] | None:
    if not text:
        return None
    at, _, id_ = text.partition("-")
    if not (at.isascii() and at.isdigit() and len(at) < 16 and id_.isascii() and id_.isalnum()):
        raise InputError("The address of this page is incomplete.")
    return int(at), id_


_NEEDS: Final = (CATALOG_READ, CHECK_READ)
# Groups that scorecards name decide without the permission: each is judged by what it decides on.
EXEMPTIONS: Sequence[PageRoute] = (
    PageRoute("GET", PATH, show, _NEEDS),
    PageRoute("GET", _NEW, begin, _NEEDS),
    PageRoute("POST", _NEW, ask, _NEEDS),
    PageRoute("POST", f"{PATH}/{{id}}/approve", approve, _NEEDS),
    PageRoute("POST", f"{PATH}/{{id}}/deny", deny, _NEEDS),
    PageRoute("POST", f"{PATH}/{{id}}/revoke", revoke, _NEEDS),
)
