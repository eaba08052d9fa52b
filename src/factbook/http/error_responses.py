"""Rendering of errors as replies: one form for REST, one for the tool-call endpoint."""

from typing import Any

import structlog

from factbook.errors import (
    AuthenticationError,
    FactbookError,
    NotAllowedError,
    TooManyRequestsError,
    UnavailableError,
)
from factbook.http.requests import Reply, Request, reply
from factbook.schemas.common import ErrorAnswer, ErrorDetails, ErrorRequest, ErrorStatus
from factbook.telemetry.logs import redact_text

log = structlog.get_logger("factbook.api")


def rest(error: FactbookError, request: Request) -> Reply:
    """Error as the catalog API has it: `{"error", "request", "response"}`; no header values."""
    message, url = told(error, request), redact_text(request.url)
    body = ErrorAnswer(
        error=ErrorDetails(error.name, message, **error.details),
        request=ErrorRequest(request.method, url),
        response=ErrorStatus(error.status),
    )
    # It quotes what was sent: no browser is to take it for anything but JSON.
    headers = {**error.headers(), "x-content-type-options": "nosniff"}
    return Reply(reply(body).body, error.status, headers)


def protocol(error: FactbookError, request: Request) -> Reply:
    """Error in the form of MCP over HTTP: OAuth's for access, else JSON-RPC's."""
    _log_cause(error, request)
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


def told(error: FactbookError, request: Request) -> str:
    """The message as a client gets it; its cause is logged."""
    _log_cause(error, request)
    # A client may have put a token where none belongs: in the query, say.
    return redact_text(error.message)


def _log_cause(error: FactbookError, request: Request) -> None:
    if isinstance(error, UnavailableError) and error.__cause__ is not None:
        log.warning("request.unavailable", path=request.path, cause=error.cause)


def unexpected(error: Exception, request: Request, path: str | None = None) -> FactbookError:
    """Log a bug, and return a generic error that tells clients nothing else.

    `path` replaces that of the request in the log where it may be a secret.
    """
    log.error("request.failed", method=request.method, path=path or request.path, exc_info=error)
    return FactbookError()
