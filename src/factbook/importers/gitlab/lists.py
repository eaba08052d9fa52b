"""Listings of REST: read to their end, or told to be incomplete."""

from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from factbook.integrations.gitlab.api import PER_PAGE, GitlabApi, next_page
from factbook.outbound import Answer
from factbook.outbound.outcomes import REPEATED, Missing, Outcome, read_as

# GitLab counts no longer lists.
_MOST_COUNTED: Final = 10_000
_MOST_PAGES: Final = 1_000
_NO_TOTAL: Final = Missing(Outcome.INCOMPLETE, "no total in the answer")


class _Numbered(Protocol):
    id: int


Row = TypeVar("Row", bound=_Numbered)


@dataclass
class RowListing(Generic[Row]):
    """The rows by id in the order of the list, and the reason if it is not complete."""

    rows: dict[int, Row] = field(default_factory=dict)
    missing: Missing | None = None
    total: int | None = None  # the largest that a page has told: a later page may be wrong

    def take(self, answer: Answer, type_: type[Row]) -> bool:
        """Add the rows of a page; false if it brings no new one, or is none."""
        listed = answer.read_as(list[Any])
        if isinstance(listed, Missing):
            self.missing = self.missing or listed
            return False
        before = len(self.rows)
        for one in listed:
            row = read_as(one, type_)
            if isinstance(row, Missing):
                self.missing = self.missing or row
            else:
                self.rows[row.id] = row
        text = answer.headers.get("x-total", "")
        if text.isascii() and text.isdigit() and len(text) < 12:
            self.total = max(self.total or 0, int(text))
        return len(self.rows) > before

    def end(self) -> None:
        """Compare the rows with their number."""
        read = len(self.rows)
        if self.total is None and read <= _MOST_COUNTED:
            self.missing = self.missing or _NO_TOTAL
        elif read < (self.total or 0):
            text = f"{read:,} of {self.total:,} were listed"
            self.missing = self.missing or Missing(Outcome.INCOMPLETE, text)


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
        is_new = found.take(answer, type_)
        if not answer.ok:
            return found
        more = next_page(answer)
        if not more:
            found.end()
            return found
        if not is_new:
            break
    found.missing = found.missing or REPEATED
    return found
