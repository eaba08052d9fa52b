"""Scorecards over HTTP: defined, published and read."""

from typing import Any, Final

from factbook.api.authentication import authorize
from factbook.api.checks.definitions import DefinitionHandlers
from factbook.api.checks.parameters import SCORECARD_ID
from factbook.auth.permissions import CATALOG_READ
from factbook.checks.submissions import check_documents
from factbook.checks.versions.scorecard_store import scorecard_store
from factbook.http.context import HandlerContext, SourceContext
from factbook.http.requests import JsonReply, Reply, Request, reply
from factbook.schemas.checks import DefinitionVersions, Scorecards, ShownScorecard


async def list_all(request: Request, state: HandlerContext) -> JsonReply[Scorecards]:
    """Every scorecard, by id; one that was never published is a draft."""
    return reply(Scorecards(*await _HANDLERS.page(request, state)))


async def create(request: Request, state: SourceContext) -> JsonReply[ShownScorecard]:
    """Define a scorecard; it is a draft until it is published."""
    return await _HANDLERS.create(request, state)


async def get(request: Request, state: HandlerContext) -> JsonReply[ShownScorecard]:
    """A scorecard with its levels, checks and rules, and a publication that is under way."""
    return await _HANDLERS.get(request, state)


async def replace(request: Request, state: SourceContext) -> JsonReply[ShownScorecard]:
    """Make the body the draft of a scorecard, which is made when there is none.

    With `publish` it is published in the same transaction. What says the same changes nothing.
    """
    return await _HANDLERS.replace(request, state)


async def delete(request: Request, state: HandlerContext) -> Reply:
    """Remove a scorecard with its levels, their trend and its exemptions."""
    return await _HANDLERS.delete(request, state)


async def publish(request: Request, state: HandlerContext) -> JsonReply[ShownScorecard]:
    """Publish the draft of a scorecard under its next semantic version.

    One that changes levels grades every entity first: `publication` tells how far that is.
    """
    return await _HANDLERS.publish(request, state)


async def list_versions(request: Request, state: HandlerContext) -> JsonReply[DefinitionVersions]:
    """The versions of a scorecard that were published, newest first."""
    return await _HANDLERS.versions(request, state)


async def _verify(
    request: Request, state: SourceContext, document: dict[str, Any], scorecard_id: str | None
) -> object:
    depth = state.settings.max_json_depth
    found = await check_documents.read_scorecard(document, state.database, depth, scorecard_id)
    # Its figures count the entities that its filter lets through.
    if request.token is not None and found.applies_to is not None:
        authorize(request.token, (CATALOG_READ,))
    return found


_HANDLERS: Final = DefinitionHandlers(scorecard_store, SCORECARD_ID, ShownScorecard, verify=_verify)
