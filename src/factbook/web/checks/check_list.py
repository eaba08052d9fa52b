"""Page of all checks, those that fail for most entities first."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from factbook.auth.permissions import CATALOG_READ, CHECK_READ, CHECK_WRITE
from factbook.checks.definitions.check import Check, parse_stored_check
from factbook.checks.results import result_age
from factbook.checks.rules import sentence
from factbook.checks.states import count_store
from factbook.checks.states.count_store import StateCounts
from factbook.checks.versions.check_store import StoredCheck, check_store
from factbook.errors import FactbookError
from factbook.http.requests import Reply
from factbook.web.checks import authors, filters
from factbook.web.checks.shares import ResultFigures
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

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


async def show(visit: PageContext) -> Reply:
    """Page of the checks."""
    database = visit.state.database
    counts = await count_store.totals(database)
    stored = await check_store.everything(database)
    query, shown = visit.query("q"), visit.query("show")
    found = [
        one
        for one in stored
        if _is_named(one, query.casefold()) and _is_meant(one, counts.get(one.id), shown)
    ]
    found.sort(key=lambda one: (-counts.get(one.id, StateCounts()).failing, one.id))
    number = filters.page_number(visit)
    address = filters.address(visit, PATH, ("q", "show"))
    page = found[(number - 1) * _PAGE : number * _PAGE]
    return visit.page(
        "checks.html",
        rows=[_line(one, counts.get(one.id, StateCounts())) for one in page],
        number=len(stored),
        age=await result_age.of_checks(database, [one.id for one in page], visit.now),
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
    words = sentence.of(check.rule) if check else ""
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


CHECK_LIST: Sequence[PageRoute] = (PageRoute("GET", PATH, show, (CATALOG_READ, CHECK_READ)),)
