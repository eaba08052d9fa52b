"""Authentication at `/mcp`: tokens made by hand, and those of OAuth for this address.

Answers say where a token can be had, which the other endpoints never do: a client with a configured
header would take it for the only way in.
"""

from factbook.api.authentication import authenticated, note_use, verified
from factbook.auth import tokens
from factbook.auth.oauth import addresses, consents, issued_tokens, scopes
from factbook.auth.oauth.issued_tokens import AccessToken
from factbook.auth.permissions import with_included
from factbook.auth.tokens import Grant
from factbook.errors import AuthenticationError, FactbookError, NotAllowedError
from factbook.http import error_responses, urls
from factbook.http.context import State
from factbook.http.requests import Reply, Request


async def authenticate(request: Request, state: State) -> Grant:
    """The token that the request carries; raises as `api.authentication.authenticate` does."""
    if state.oauth.enabled:
        server = urls.own(request, state.settings)
        request.resource_metadata = f"{server}{addresses.RESOURCE_METADATA}"
    return await authenticated(request, state, _verified)


def errors(error: FactbookError, request: Request) -> Reply:
    """Error in the form of MCP over HTTP, with where a token can be had (RFC 9728, section 5)."""
    reply = error_responses.protocol(error, request)
    challenge = _challenge(error, request)
    if not challenge:
        return reply
    return reply._replace(headers={**reply.headers, "www-authenticate": challenge})


def _challenge(error: FactbookError, request: Request) -> str:
    if not request.resource_metadata:
        return ""
    if isinstance(error, AuthenticationError):
        scope = frozenset(scopes.BASIC)
    elif isinstance(error, NotAllowedError) and (more := _grantable(error, request)):
        scope = more
    else:
        return ""
    challenge = error.headers()["www-authenticate"].partition(", scope=")[0]
    return (
        f'{challenge}, scope="{scopes.written(scope)}", '
        f'resource_metadata="{request.resource_metadata}"'
    )


def _grantable(error: NotAllowedError, request: Request) -> frozenset[str]:
    """All that the client has to ask for to go on; empty if its person cannot give it."""
    token = request.token
    if token is None or token.grantable is None or not error.missing:
        return frozenset()
    wanted = token.permissions.union(error.missing)
    return wanted if wanted <= token.grantable & frozenset(scopes.SCOPES) else frozenset()


async def _verified(request: Request, state: State, value: str) -> Grant:
    if state.company is not None and not tokens.is_shaped(value):
        resource = addresses.resource(urls.own(request, state.settings))
        return await state.company.verified(value, resource, state.database, state.token_key)
    try:
        return await verified(request, state, value)
    except AuthenticationError as error:
        # One that was made by hand and is not good any more has its id.
        if request.token_id or not state.oauth.issues or not tokens.is_shaped(value):
            raise
        unknown = error
    digest = tokens.digest(value, state.token_key)
    found = await issued_tokens.find_access(state.database, digest)
    if found is None:
        raise unknown
    _check(found, request, state)
    _note(found, state)
    return Grant(
        found.consent,
        found.person,
        with_included(found.permissions),
        found.expires_at,
        found.last_used_at,
        None,
        with_included(found.grantable),
    )


def _check(found: AccessToken, request: Request, state: State) -> None:
    """Raise AuthenticationError for a token that has expired or is for another resource."""
    request.token_id = found.consent
    if found.expires_at <= state.clock():
        raise AuthenticationError("The token has expired.", token_sent=True)
    if found.audience != addresses.resource(urls.own(request, state.settings)):
        raise AuthenticationError("The token is for another address.", token_sent=True)
    if not found.permissions:
        raise AuthenticationError("The token's person may not do this any more.", token_sent=True)


def _note(found: AccessToken, state: State) -> None:
    now, id_ = state.clock(), found.consent
    if found.last_used_at is None or not tokens.is_noted(found.last_used_at, now):
        note_use(state, id_, now, lambda transaction: consents.touch(transaction, id_, now))
