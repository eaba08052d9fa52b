"""Requests to a Gitea instance: single answers, totals, and paginated lists.

Source: Gitea's API description 1.27. A server may return smaller pages than requested, so only the
total, or an empty page, marks the end of a list.
"""

from typing import Any, Final, Generic, NamedTuple, TypeVar

from factbook.integrations.code_host import CodeHostApi
from factbook.integrations.gitea.options import GiteaOptions
from factbook.outbound.cache import exceeds_noted_limit, note_exceeded_limit
from factbook.outbound.outcomes import Answer, Missing, Outcome

Form = TypeVar("Form")
Row = TypeVar("Row")

# What servers give at most unless they are configured otherwise.
PAGE: Final = 50
# 5,000 pull requests or issues.
MOST_PAGES: Final = 100

HIDDEN: Final = Missing(Outcome.DENIED, "hidden from the credential")
NO_TOTAL: Final = Missing(Outcome.TRANSIENT, "no total in the answer")


class Rows(NamedTuple, Generic[Row]):
    """Part of a list; `total` is None if the host does not state it."""

    rows: list[Row]
    total: int | None

    def ends(self, read: int) -> bool:
        """True if the list ends with these rows, `read` being the number read with them."""
        return not self.rows or (self.total is not None and read >= self.total)


class GiteaApi(CodeHostApi[GiteaOptions]):
    """Client for a Gitea instance, with the time of one collection."""

    async def get(self, target: str, **query: str | int) -> Answer:
        """Send a request; redirects from a repository's former name are followed."""
        return await self._client.get(f"{self._options.rest}{target}", query=query, follow=True)

    async def one(
        self, target: str, form: type[Form], hidden: Missing | None = HIDDEN, **query: str | int
    ) -> Form | Missing:
        """The answer in this form.

        `hidden` is the reason given for "not found", which Gitea often answers for what exists
        but may not be read. With None, the answer is taken literally.
        """
        found = await self._ask(target, form, hidden, query)
        return found if isinstance(found, Missing) else found[0]

    async def page(
        self, target: str, form: type[list[Row]], hidden: Missing = HIDDEN, **query: str | int
    ) -> Rows[Row] | Missing:
        """One page of a list."""
        found = await self._ask(target, form, hidden, query)
        return found if isinstance(found, Missing) else Rows(*found)

    async def total(self, target: str, **query: str | int) -> int | Missing:
        """The number of rows in a list."""
        found = await self.page(target, list[Any], HIDDEN, limit=1, **query)
        if isinstance(found, Missing):
            return found
        return NO_TOTAL if found.total is None else found.total

    async def pages(
        self,
        target: str,
        form: type[list[Row]],
        hidden: Missing = HIDDEN,
        *,
        what: str,
        most: int = MOST_PAGES,
        **query: str | int,
    ) -> tuple[Rows[Row], bool] | Missing:
        """The rows of at most `most` pages, and true if the list is complete.

        If the host states that there are more, or a recent run found so, only the first page is
        read; `what` distinguishes lists of one URL.
        """
        found = Rows[Row]([], None)
        key = f"{what}:{self.host}{target}"
        is_noted = await exceeds_noted_limit(self.memory, key, most, self.now)
        for number in range(1, 2 if is_noted else most + 1):
            page = await self.page(target, form, hidden, page=number, limit=PAGE, **query)
            if isinstance(page, Missing):
                return page
            found = Rows(found.rows + page.rows, page.total)
            if page.ends(len(found.rows)):
                return found, True
            if page.total is not None and page.total > most * PAGE:
                return found, False
        if not is_noted:
            await note_exceeded_limit(self.memory, key, most, self.now)
        return found, False

    async def _ask(
        self, target: str, form: type[Form], hidden: Missing | None, query: dict[str, str | int]
    ) -> tuple[Form, int | None] | Missing:
        answer = await self.get(target, **query)
        if hidden and answer.outcome in {Outcome.DENIED, Outcome.NOT_FOUND}:
            return hidden
        found = answer.read_as(form)
        if isinstance(found, Missing):
            return found
        return found, _total(answer.headers.get("x-total-count"))


def _total(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 12 else None
