"""Checks over HTTP: defined, published and read."""

from typing import Any, Final

from factbook.api.authentication import authorize
from factbook.api.checks.definitions import DefinitionHandlers
from factbook.api.checks.parameters import CHECK_ID
from factbook.checks.definitions import author_permissions
from factbook.checks.rules import language
from factbook.checks.rules.check_definition import Check, parse_stored_check
from factbook.checks.submissions import check_documents
from factbook.checks.versions.check_store import StoredCheck, check_store
from factbook.errors import FactbookError
from factbook.http.context import HandlerContext, SourceContext
from factbook.http.requests import JsonReply, Reply, Request, reply
from factbook.schemas.checks import Checks, DefinitionVersions, ShownCheck


async def list_all(request: Request, state: HandlerContext) -> JsonReply[Checks]:
    """Every check, by id; one that was never published is a draft."""
    return reply(Checks(*await _HANDLERS.page(request, state)))


async def create(request: Request, state: SourceContext) -> JsonReply[ShownCheck]:
    """Define a check; it is a draft until it is published.

    It takes the permissions to read what the check reads: results tell about values.
    Every mistake is told at once: operators that do not fit a fact's type, facts that no source
    has, rules that always hold, and checks that would read themselves.
    """
    return await _HANDLERS.create(request, state)


async def get(request: Request, state: HandlerContext) -> JsonReply[ShownCheck]:
    """A check with its rule in words, its draft, and a publication that is under way."""
    return await _HANDLERS.get(request, state)


async def replace(request: Request, state: SourceContext) -> JsonReply[ShownCheck]:
    """Make the body the draft of a check, which is made when there is none.

    With `publish` it is published in the same transaction. What says the same changes nothing. It
    takes the permissions to read what the check reads.
    """
    return await _HANDLERS.replace(request, state)


async def delete(request: Request, state: HandlerContext) -> Reply:
    """Remove a check with its results and their history; 409 where another check reads it."""
    return await _HANDLERS.delete(request, state)


async def publish(request: Request, state: HandlerContext) -> JsonReply[ShownCheck]:
    """Publish the draft of a check under its next semantic version.

    A version that changes results is evaluated for every entity first: `publication` tells how far
    that is, and results are those of the version before until then.
    """
    return await _HANDLERS.publish(request, state)


async def list_versions(request: Request, state: HandlerContext) -> JsonReply[DefinitionVersions]:
    """The versions of a check that were published, newest first."""
    return await _HANDLERS.versions(request, state)


async def _verify(
    request: Request, state: SourceContext, document: dict[str, Any], check_id: str | None
) -> object:
    token, depth = request.token, state.settings.max_json_depth

    def authorized(check: Check) -> None:
        if token is not None:
            authorize(token, author_permissions.needed(check))

    return await check_documents.read_check(
        document, state.database, state.registry, depth, check_id, authorized
    )


def _sentence(stored: StoredCheck) -> dict[str, Any]:
    try:
        return {"sentence": language.describe_rule(parse_stored_check(stored.current).rule)}
    except FactbookError:
        return {}  # another release took it


_HANDLERS: Final = DefinitionHandlers(
    check_store, CHECK_ID, ShownCheck, verify=_verify, members=_sentence
)
