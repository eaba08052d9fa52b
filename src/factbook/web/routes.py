"""Table of pages: every method of every path, its handler and the permissions it needs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from factbook.asgi import ASGIApp, Receive, Scope, Send
from factbook.errors import NotFoundError
from factbook.http.context import State
from factbook.http.pipeline import make_router
from factbook.http.requests import Reply
from factbook.observability.traces import Tracing
from factbook.web import pages
from factbook.web.account import ACCOUNT, API_ACCESS
from factbook.web.admin import AUDIT, PEOPLE, STATUS
from factbook.web.catalog import CATALOG, CATALOG_EXPORT
from factbook.web.checks import CHECK_LIST, CHECK_PAGE, EXEMPTIONS
from factbook.web.connect import CONNECT, PLAYGROUND
from factbook.web.data_sources import DATA_SOURCE, DATA_SOURCES, SOURCE_RUNS
from factbook.web.definition_editor import DEFINITION_EDITORS, PUBLISHING
from factbook.web.entity import ENTITY, ENTITY_SUMMARY
from factbook.web.entity_checks import ENTITY_CONTENTS
from factbook.web.entity_facts import FACTS
from factbook.web.fact_across import FACT_ACROSS
from factbook.web.help import HELP
from factbook.web.importers import IMPORTERS, IMPORTS
from factbook.web.live import LIVE, ChangeTail
from factbook.web.outgoing import CONNECTIONS, DIGESTS, WEBHOOKS
from factbook.web.overview import OVERVIEW
from factbook.web.pages import OPEN, PageContext, PageEndpoint, PageRoute, Site
from factbook.web.scorecards import SCORECARD_LIST, SCORECARD_MATRICES, SCORECARD_PAGE, TEAM_MATRIX
from factbook.web.search import SEARCH
from factbook.web.sets import ENTITY_HISTORY, SETS
from factbook.web.sign_in import CONSENT, SIGNING_IN, SIGNING_IN_ELSEWHERE
from factbook.web.source_editor import SOURCE_EDITOR

if TYPE_CHECKING:
    from factbook.auth.oauth.clients import FetchDocument
    from factbook.auth.oidc.client import OpenID


async def _show_asset(visit: PageContext) -> Reply:
    """Reply with a stylesheet, a script or a picture."""
    return pages.reply_with_asset(visit.request.path)


PAGES: Sequence[PageRoute] = (
    PageRoute("GET", "/static/{name}", _show_asset, OPEN),
    *SIGNING_IN,
    *SIGNING_IN_ELSEWHERE,
    *LIVE,
    *CONSENT,
    *OVERVIEW,
    *SEARCH,
    *ACCOUNT,
    *API_ACCESS,
    *PEOPLE,
    *AUDIT,
    *STATUS,
    *CATALOG,
    *CATALOG_EXPORT,
    *ENTITY_SUMMARY,
    *ENTITY,
    *ENTITY_CONTENTS,
    *ENTITY_HISTORY,
    *FACTS,
    *SETS,
    *IMPORTS,
    *IMPORTERS,
    *SCORECARD_LIST,
    *SCORECARD_PAGE,
    *SCORECARD_MATRICES,
    *TEAM_MATRIX,
    *PUBLISHING,
    *CHECK_LIST,
    *CHECK_PAGE,
    *EXEMPTIONS,
    *DEFINITION_EDITORS,
    *DATA_SOURCES,
    *SOURCE_EDITOR,
    *DATA_SOURCE,
    *FACT_ACROSS,
    *SOURCE_RUNS,
    *CONNECTIONS,
    *WEBHOOKS,
    *DIGESTS,
    *CONNECT,
    *PLAYGROUND,
    *HELP,
)


def make_page_router(
    state: State,
    openid: "OpenID | None",
    fetch_document: "FetchDocument | None",
    tracing: Tracing,
    whole: ASGIApp,
    unknown: ASGIApp,
) -> ASGIApp:
    """Router over all pages of the `whole` application; `unknown` answers API clients elsewhere."""
    tail = ChangeTail(state.database, state.clock, state.stopping, state.spawn)
    site = Site(state, whole, tail, openid, fetch_document)
    paths: dict[str, dict[str, PageRoute]] = {}
    for page in PAGES:
        paths.setdefault(page.path, {})[page.method] = page
    endpoints = {path: PageEndpoint(methods, site) for path, methods in paths.items()}
    nowhere = tracing.nowhere(PageEndpoint({"GET": _NOWHERE}, site))

    async def elsewhere(scope: Scope, receive: Receive, send: Send) -> None:
        asks_for_page = scope["method"] in {"GET", "HEAD"} and any(
            name == b"accept" and b"text/html" in text for name, text in scope["headers"]
        )
        await (nowhere if asks_for_page else unknown)(scope, receive, send)

    return make_router(tracing.endpoints(endpoints), elsewhere)


async def _refuse_unknown_page(visit: PageContext) -> Reply:
    raise NotFoundError("No page of this service has this address.")


_NOWHERE = PageRoute("GET", "(none)", _refuse_unknown_page, OPEN)
