"""Listings of REST: read to their end, or told to be incomplete."""

from typing import Any, Final

from factbook.importers.code_host.rows import Row, RowListing
from factbook.integrations.gitlab.api import PER_PAGE, GitlabApi, next_page
from factbook.outbound.outcomes import REPEATED

# What is made while a list is read comes before its first page. Behind the last it would make up
# the total for another that a removal moved to a page that was read.
NEWEST_FIRST: Final = {"order_by": "id", "sort": "desc"}

# GitLab counts no longer lists.
_MOST_COUNTED: Final = 10_000
_MOST_PAGES: Final = 1_000


async def listing(
    api: GitlabApi, target: str, type_: type[Row], **query: str | int
) -> RowListing[Row]:
    """Every row of a list.

    A page that fails, a row of another form and a list with fewer rows than GitLab counts make the
    listing incomplete.
    """
    found = RowListing[Row]()
    more: dict[str, str] = {}
    for _ in range(_MOST_PAGES):
        answer = await api.get(target, per_page=PER_PAGE, **query, **more)
        found.count(answer, "x-total")
        is_new = found.take(answer.read_as(list[Any]), type_)
        if not answer.ok:
            return found
        more = next_page(answer)
        if not more:
            found.end(_MOST_COUNTED)
            return found
        if not is_new:
            break
    found.missing = found.missing or REPEATED
    return found
