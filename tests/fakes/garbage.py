"""Answers that no vendor should give: what is between stands for it, or what it became."""

import json
import random
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from tests.fakes.faults import Answer, Fault, cut_off, not_json, saying

JSON = "application/json"
_OTHERS: tuple[Any, ...] = (
    None, True, -1, 10**400, 1.5, "x", "x" * 1_000_000, "\ud7ff\u0000", [], [[]], {}, {"a": [1]},
)  # fmt: skip


def raw(body: bytes, status: int = 200, **headers: str) -> Fault:
    """Always these bytes, as JSON."""

    async def fault(_: Request, __: Answer) -> Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Response(body, status, named, JSON)

    return fault


async def redirect(request: Request, _: Answer) -> Response:
    """To itself, for ever."""
    return Response(status_code=302, headers={"location": str(request.url)})


def changed(change: Callable[[str], str]) -> Fault:
    """A good answer whose text is changed."""

    async def fault(request: Request, answer: Answer) -> Response:
        response = await answer(request)
        text = bytes(response.body).decode()
        return Response(change(text).encode("utf-8", "surrogatepass"), 200, None, JSON)

    return fault


def of_wrong_types(chance: random.Random) -> Fault:
    """A good answer of which some values became something else; a list in it is never longer."""

    def change(text: str) -> str:
        try:
            return json.dumps(_other(json.loads(text), chance))
        except ValueError:
            return text

    return changed(change)


def with_limits(**headers: str) -> Fault:
    """A good answer that says this of limits."""

    async def fault(request: Request, answer: Answer) -> Response:
        response = await answer(request)
        for name, value in headers.items():
            response.headers[name.replace("_", "-")] = value
        return response

    return fault


def whole(chance: random.Random) -> dict[str, Fault]:
    """Answers in which there is nothing to read, by what they are."""
    return {
        "random bytes": raw(chance.randbytes(5_000)),
        "a page": not_json,
        "cut off": cut_off,
        "nothing": raw(b""),
        "a number": raw(b"1e999"),
        "a long text": raw(b'"' + b"x" * 10_000_000 + b'"'),
        "deep nesting": raw(b"[" * 100_000),
        "UTF-16 without a mark": raw('{"data": {}}'.encode("utf-16-le")),
        "Latin-1": raw('{"name": "größe"}'.encode("latin-1")),
        "a redirection": redirect,
        "an error": saying({"message": "x" * 100_000}, 500),
    }


LIMITS = {
    "more left than there is": with_limits(x_ratelimit_limit="10", x_ratelimit_remaining="99"),
    "two that differ": with_limits(
        x_ratelimit_limit="5000",
        x_ratelimit_remaining="4000",
        ratelimit_limit="10",
        ratelimit_remaining="9",
    ),
    "no numbers": with_limits(x_ratelimit_limit="many", x_ratelimit_remaining="-1"),
    "reset long ago": with_limits(
        x_ratelimit_limit="100", x_ratelimit_remaining="50", x_ratelimit_reset="1"
    ),
    "a pause with a good answer": with_limits(retry_after="86400"),
    "a huge number": with_limits(
        x_ratelimit_limit="9" * 400, x_ratelimit_remaining="9" * 400, retry_after="9" * 400
    ),
}
"""Good answers that say of rate limits what cannot be, and that keep nobody from asking."""


def any_of(faults: list[Fault], chance: random.Random) -> Fault:
    """Another one of the faults each time."""

    async def fault(request: Request, answer: Answer) -> Response:
        return await chance.choice(faults)(request, answer)

    return fault


def _other(value: Any, chance: random.Random) -> Any:
    if chance.random() < 0.1:
        return chance.choice(_OTHERS)
    if isinstance(value, dict):
        return {name: _other(each, chance) for name, each in value.items()}
    if isinstance(value, list):
        return [_other(each, chance) for each in value]
    return value
