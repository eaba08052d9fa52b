"""What can go wrong between GitHub and whoever asks."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from tests.fakes.github.rest import Said, refusal

SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
)
Answer = Callable[[Request], Awaitable[Response]]
Fault = Callable[[Request, Answer], Awaitable[Response]]


async def well(request: Request, answer: Answer) -> Response:
    """No fault."""
    return await answer(request)


async def bad_gateway(_: Request, __: Answer) -> Response:
    """What GitHub says when it took too long."""
    return Response("<html>502 Bad Gateway</html>", 502, media_type="text/html")


async def unavailable(_: Request, __: Answer) -> Response:
    """What GitHub says when it is down."""
    return as_json(refusal(503, "Service unavailable"))


async def secondary_limit(_: Request, __: Answer) -> Response:
    """A secondary rate limit, which says how long to wait."""
    return as_json(refusal(403, SECONDARY), {"retry-after": "60"})


async def not_json(_: Request, __: Answer) -> Response:
    """A page of some proxy, with a good status."""
    return Response("<html>Sign in</html>", media_type="text/html")


async def cut_off(request: Request, answer: Answer) -> Response:
    """The first half of a good answer."""
    response = await answer(request)
    return Response(bytes(response.body)[: len(response.body) // 2], media_type="application/json")


async def of_another_form(_: Request, __: Answer) -> Response:
    """JSON, but of no form that was agreed on."""
    return Response(b'{"data": {"r0": {"id": 1}}, "tree": 7}', media_type="application/json")


def slow(seconds: float) -> Fault:
    """A good answer after a while."""

    async def fault(request: Request, answer: Answer) -> Response:
        await asyncio.sleep(seconds)
        return await answer(request)

    return fault


def as_json(said: Said, headers: dict[str, str] | None = None) -> Response:
    """A response with a JSON body."""
    body = msgspec.json.encode(said.body)
    return Response(body, said.status, headers, "application/json; charset=utf-8")
