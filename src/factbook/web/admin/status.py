"""Administration → Status: the state of the service, for its operators."""

from collections.abc import Sequence
from typing import Final

from factbook.auth.permissions import OPERATIONS_MANAGE
from factbook.http.requests import Reply
from factbook.observability import service_status
from factbook.observability.service_status import Observed
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

PATH: Final = "/status"


async def show(visit: PageContext) -> Reply:
    """Page of the status, each part as far as it can be read."""
    state = visit.state
    observed = Observed(state.database, state.metrics, state.clock, state.settings)
    parts = await service_status.read_status(observed)
    return visit.page("status.html", found=parts)


STATUS: Sequence[PageRoute] = (PageRoute("GET", PATH, show, (OPERATIONS_MANAGE,)),)
