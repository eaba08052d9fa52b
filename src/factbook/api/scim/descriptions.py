"""Descriptions of the service, and addresses that it does not offer."""

from typing import Any

from factbook.api.scim import answers
from factbook.errors import NotAllowedError, NotFoundError, UnsupportedError
from factbook.http.context import HandlerContext
from factbook.http.requests import Reply, Request
from factbook.scim import protocol

_NOT_OFFERED = ("/Bulk", "/Me", "/.search")


async def config(request: Request, state: HandlerContext) -> Reply:
    """The configuration of the service."""
    _refuse_filter(request)
    return answers.reply(protocol.describe_service(answers.base(request, state)))


async def resource_types(request: Request, state: HandlerContext) -> Reply:
    """The types of resources."""
    _refuse_filter(request)
    return answers.reply(
        protocol.wrap_list(protocol.describe_resource_types(answers.base(request, state)))
    )


async def resource_type(request: Request, state: HandlerContext) -> Reply:
    """A type of resources."""
    return _one(request, protocol.describe_resource_types(answers.base(request, state)))


async def schemas(request: Request, state: HandlerContext) -> Reply:
    """The schemas of all resources."""
    _refuse_filter(request)
    return answers.reply(
        protocol.wrap_list(protocol.describe_schemas(answers.base(request, state)))
    )


async def schema(request: Request, state: HandlerContext) -> Reply:
    """The schema of a type of resources."""
    return _one(request, protocol.describe_schemas(answers.base(request, state)))


async def nowhere(request: Request, state: HandlerContext) -> Reply:
    """Any other address below that of SCIM."""
    if any(request.path.endswith(end) for end in _NOT_OFFERED):
        raise UnsupportedError
    raise NotFoundError(f"There is nothing at {request.path}.")


def _refuse_filter(request: Request) -> None:
    """Raise NotAllowedError for a filter, as the standard wants it here (RFC 7644, 4)."""
    if request.all("filter"):
        raise NotAllowedError("This list takes no filter.")


def _one(request: Request, known: list[dict[str, Any]]) -> Reply:
    id_ = request.parameter("id")
    for one in known:
        if one["id"].lower() == id_.lower():
            return answers.reply(one)
    raise NotFoundError(f"There is nothing called {id_[:80]}.")
