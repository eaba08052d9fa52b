"""Connect an agent: the endpoint, the configuration of each client, and a live check."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from factbook.auth.permissions import TITLES
from factbook.errors import NotFoundError
from factbook.http.client_configs import AGENTS, PATH, VARIABLE, is_address
from factbook.http.requests import Reply
from factbook.web.connect import endpoint_check
from factbook.web.connect.endpoint_check import READS, CheckStep
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

CONNECT_PATH: Final = "/connect"

_PLACEHOLDER = "YOUR_TOKEN"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


async def show(visit: PageContext, steps: Sequence[CheckStep] = ()) -> Reply:
    """Page with the configuration of each client."""
    name = visit.query("client") or next(iter(AGENTS))
    agent = AGENTS.get(name)
    if agent is None:
        raise NotFoundError("There is no client of this name here.")
    server = visit.server
    # An odd name of a host comes from the browser alone, yet belongs into nobody's file.
    url = server + PATH if is_address(server) else None
    return visit.page(
        "connect.html",
        url=url,
        path=PATH,
        public=visit.state.settings.public_url,
        is_local=_is_local(server),
        clients=[(id_, each.title) for id_, each in AGENTS.items()],
        client=name,
        agent=agent,
        configuration=agent.render(url, None) if url else "",
        whole=agent.render(url, _PLACEHOLDER) if url else "",
        variable=VARIABLE,
        placeholder=_PLACEHOLDER,
        permissions=[TITLES[each] for each in READS],
        tools=len(visit.state.tools),
        steps=steps,
    )


async def check(visit: PageContext) -> Reply:
    """Send the endpoint a client's first requests, and show the answers."""
    return await show(visit, await endpoint_check.checked(visit))


async def back(visit: PageContext) -> Reply:
    """Redirect to the form: a check is started by the form, and its address alone is no page."""
    return visit.redirect(CONNECT_PATH)


def _is_local(server: str) -> bool:
    """True if only this machine can reach the address."""
    try:
        return urlsplit(server).hostname in _LOOPBACK
    except ValueError:  # no address at all
        return False


CONNECT: Sequence[PageRoute] = (
    PageRoute("GET", CONNECT_PATH, show, READS),
    PageRoute("GET", f"{CONNECT_PATH}/check", back, READS),
    PageRoute("POST", f"{CONNECT_PATH}/check", check, READS),
)
