"""What can go wrong between a vendor and whoever asks."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

Answer = Callable[[Request], Awaitable[Response]]
Fault = Callable[[Request, Answer], Awaitable[Response]]


async def well(request: Request, answer: Answer) -> Response:
    """No fault."""
    return await answer(request)


async def bad_gateway(_: Request, __: Answer) -> Response:
    """What a host says when it took too long."""
    return Response("<html>502 Bad Gateway</html>", 502, media_type="text/html")


async def unavailable(_: Request, __: Answer) -> Response:
    """What a host says when it is down."""
    return as_json({"message": "Service unavailable"}, 503)


async def not_json(_: Request, __: Answer) -> Response:
    """A page of some proxy, with a good status."""
    return Response("<html>Sign in</html>", media_type="text/html")


async def cut_off(request: Request, answer: Answer) -> Response:
    """The first half of a good answer."""
    response = await answer(request)
    return Response(bytes(response.body)[: len(response.body) // 2], media_type="application/json")


def saying(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Fault:
    """Always this answer, such as JSON of a form that nobody agreed on."""

    async def fault(_: Request, __: Answer) -> Response:
        return as_json(body, status, headers)

    return fault


def slow(seconds: float) -> Fault:
    """A good answer after a while."""

    async def fault(request: Request, answer: Answer) -> Response:
        await asyncio.sleep(seconds)
        return await answer(request)

    return fault


def as_json(body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response with a JSON body."""
    content = msgspec.json.encode(body)
    return Response(content, status, dict(headers or {}), "application/json; charset=utf-8")
