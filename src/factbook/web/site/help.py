"""Help: the documentation of this release, and the part that each page leads to."""

from collections.abc import Sequence
from typing import Final

from factbook.errors import NotFoundError
from factbook.http.requests import Reply, offloaded
from factbook.web.site import documentation
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext


async def show(visit: PageContext) -> Reply:
    """Start page of the documentation."""
    return await _page(visit, documentation.START)


async def page(visit: PageContext) -> Reply:
    """A page of the documentation; raises NotFoundError."""
    return await _page(visit, visit.request.parameter("page"))


async def _page(visit: PageContext, name: str) -> Reply:
    found = await offloaded(documentation.document, name)
    if found is None:
        raise NotFoundError("The documentation has no such page.")
    return visit.page(
        "help.html", document=found, start=documentation.PATH, is_start=name == documentation.START
    )


HELP: Final[Sequence[PageRoute]] = (
    PageRoute("GET", documentation.PATH, show),
    PageRoute("GET", f"{documentation.PATH}/{{page:path}}", page),
)
