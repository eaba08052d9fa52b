"""Every error as a reply: one form for REST, one for the tool-call endpoint."""

from typing import Any

import structlog

from factbook.api.requests import Reply, Request, reply
from factbook.errors import (
    AuthenticationError,
    FactbookError,
    NotAllowedError,
    TooManyRequestsError,
)

log = structlog.get_logger("factbook.api")


def rest(error: FactbookError, request: Request) -> Reply:
    """The form of the catalog API: `{"error", "request", "response"}`; no header's value in it."""
    body = {
        "error": {"name": error.name, "message": error.message, **error.details},
        "request": {"method": request.method, "url": request.url},
        "response": {"statusCode": error.status},
    }
    return Reply(reply(body).body, error.status, error.headers())


def protocol(error: FactbookError, request: Request) -> Reply:
    """The forms of the Model Context Protocol over HTTP: OAuth's for access, else JSON-RPC's."""
    body: dict[str, Any]
    if isinstance(error, AuthenticationError):
        body = {"error": "invalid_token", "error_description": error.message}
    elif isinstance(error, NotAllowedError) and error.missing:
        body = {"error": "insufficient_scope", "error_description": error.message}
    elif isinstance(error, TooManyRequestsError):
        body = {"error": "too_many_requests", "error_description": error.message}
    else:
        code = -32603 if error.status >= 500 else -32600
        body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": error.message}}
    return Reply(reply(body).body, error.status, error.headers())


def unexpected(error: Exception, request: Request) -> FactbookError:
    """What clients are told of a bug: nothing but that there was one. The log gets the rest."""
    log.error("request.failed", method=request.method, path=request.path, exc_info=error)
    return FactbookError()
