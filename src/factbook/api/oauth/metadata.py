"""Metadata by which clients find out how to get a token (RFC 8414 and RFC 9728)."""

from typing import Any

from factbook.auth.oauth import addresses
from factbook.auth.oauth.client_documents import PUBLIC
from factbook.auth.oauth.scopes import BASIC
from factbook.errors import NotFoundError
from factbook.http import urls
from factbook.http.context import State
from factbook.http.requests import Reply, Request, reply

_NOWHERE = "OAuth is not offered here."


async def of_resource(request: Request, state: State) -> Reply:
    """Metadata of the protected resource: which authorization server issues tokens for it."""
    if not state.oauth.enabled:
        raise NotFoundError(_NOWHERE)
    server = urls.own(request, state.settings)
    return reply(
        {
            "resource": addresses.resource(server),
            "resource_name": "Factbook",
            "authorization_servers": [state.oauth.issuer or addresses.issuer(server)],
            "bearer_methods_supported": ["header"],
            "scopes_supported": list(BASIC),
        }
    )


async def of_server(request: Request, state: State) -> Reply:
    """Metadata of the authorization server."""
    require_issuing(state)
    server = urls.own(request, state.settings)
    metadata: dict[str, Any] = {
        "issuer": addresses.issuer(server),
        "authorization_endpoint": f"{server}{addresses.AUTHORIZE}",
        "token_endpoint": f"{server}{addresses.TOKEN}",
        "revocation_endpoint": f"{server}{addresses.REVOKE}",
        # Some hosts ask for all of these; more is asked for where a tool needs it.
        "scopes_supported": list(BASIC),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_methods_supported": [PUBLIC],
        "revocation_endpoint_auth_methods_supported": [PUBLIC],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
    }
    if state.oauth.registration:
        metadata["registration_endpoint"] = f"{server}{addresses.REGISTER}"
    return reply(metadata)


def require_issuing(state: State) -> None:
    """Raise NotFoundError where this service issues no tokens itself."""
    if not state.oauth.issues:
        raise NotFoundError(_NOWHERE)
