"""Listings: read to their end, or told to be incomplete."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from factbook.importers.code_host.rows import Row, RowListing
from factbook.importers.gitea.answers import FoundRepositories
from factbook.integrations.gitea.api import PAGE, GiteaApi
from factbook.outbound import Answer
from factbook.outbound.outcomes import Missing, too_many

_MOST_PAGES: Final = 2_000

RowsOf = Callable[[Answer], Sequence[Any] | Missing]


def rows(answer: Answer) -> Sequence[Any] | Missing:
    """The rows of a list."""
    return answer.read_as(list[Any])


def found_rows(answer: Answer) -> Sequence[Any] | Missing:
    """The rows of a search."""
    found = answer.read_as(FoundRepositories)
    return found if isinstance(found, Missing) else found.data


async def listing(
    api: GiteaApi, target: str, type_: type[Row], rows_of: RowsOf = rows, **query: str | int
) -> RowListing[Row]:
    """Every row of a list.

    A server may give smaller pages than were asked for, so that the total, or an empty page, ends
    the list. A page that fails, a row of another form and a list with fewer rows than Gitea counts
    make the listing incomplete.
    """
    found, read = RowListing[Row](), 0
    for number in range(1, _MOST_PAGES + 1):
        answer = await api.get(target, page=number, limit=PAGE, **query)
        found.count(answer, "x-total-count")
        page = rows_of(answer)
        found.take(page, type_)
        if isinstance(page, Missing):
            return found
        read += len(page)
        if not page or (found.total is not None and read >= found.total):
            found.end()
            return found
    found.missing = found.missing or too_many(_MOST_PAGES, "pages of one list")
    return found
