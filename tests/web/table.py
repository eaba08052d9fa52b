"""The table of pages, as tests walk along it."""

import re
from collections.abc import Iterator

from factbook.web.pages import OPEN, PageRoute
from factbook.web.routes import PAGES
from tests.service import Service


def path_of(page: PageRoute) -> str:
    """A path of this row of the table, of something that there is not."""
    return re.sub(r"\{[^}]*\}", "1", page.path)


def rows(method: str) -> Iterator[PageRoute]:
    for page in PAGES:
        if page.method == method and page.needs is not OPEN:
            yield page


async def name_is(service: Service, name: str) -> bool:
    [row] = await service.state.database.all("SELECT display_name FROM people")
    return bool(row[0] == name)
