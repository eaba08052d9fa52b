"""Results of a check as rows of its page: what was seen, what is wanted, and how to fix it."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from factbook.auth.permissions import EXEMPTION_REQUEST, SOURCE_READ
from factbook.catalog import ref as refs
from factbook.catalog.store import membership
from factbook.checks import state
from factbook.checks.definitions.check import Check
from factbook.checks.evaluation.explanation import Evidence, Explanation
from factbook.checks.exemptions import exemption
from factbook.checks.exemptions.exemption import ExemptionActor
from factbook.checks.results import explained_rows, result_queries
from factbook.checks.results.explained_rows import ExplainedRow
from factbook.checks.results.result_queries import CheckedRow, ResultFilter
from factbook.checks.rules import sentence
from factbook.checks.rules.fact_reference import CHECKS, ENTITY
from factbook.errors import InputError
from factbook.web.checks import shares
from factbook.web.entity import check_results
from factbook.web.site import formats
from factbook.web.site.formats import segment
from factbook.web.site.page_context import PageContext

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
        found = await result_queries.of_check(*asked)
    else:
        found = await result_queries.counted_of_check(*asked, number)
    rows = await shown(visit, check, found[:limit])
    return rows, found[limit - 1].ref if len(found) > limit else None


async def of_entity(visit: PageContext, check: Check, entity: str) -> list[ResultRow]:
    """The result of one entity; raises InputError for what is no reference."""
    ref = str(refs.parse(entity))
    found = await result_queries.of_entity(
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
    explained = await explained_rows.of_rows(database, check, found, visit.now)
    groups = await membership.read_groups(database, person, visit.state.trust)
    actor = ExemptionActor(person, groups, may_request=visit.may(EXEMPTION_REQUEST))
    return [_row(check, one, actor, reads=reads) for one in explained]


def _row(check: Check, one: ExplainedRow, actor: ExemptionActor, *, reads: bool) -> ResultRow:
    word, told = state.word(one.row.state), one.explanation if reads else None
    asks = None
    if word in {"fail", "unknown"} and exemption.may_request(actor, [one.row.owner]):
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
        sentence.of(leaf).removesuffix("."),
        state.word(one.state),
        path,
        None if one.value is None else _brief(one.value),
        one.collected_at,
        one.reason and check_results.reason_in_words(one.reason).short,
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
