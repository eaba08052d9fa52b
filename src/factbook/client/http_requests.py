"""Steps that both clients share: their options, the request of a call, and its failures."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx2

from factbook.client.calls import Call
from factbook.client.errors import ConnectionFailed

T = TypeVar("T")


@contextmanager
def connecting(server: str) -> Iterator[None]:
    """Raise ConnectionFailed for every error of the HTTP library in this block."""
    try:
        yield
    except httpx2.TimeoutException:
        raise ConnectionFailed(f"{server} did not answer in time.") from None
    except httpx2.RequestError as error:
        raise ConnectionFailed(f"{server} is not reachable: {error}") from None


def options(server: str, token: str | None) -> dict[str, Any]:
    """Options of both HTTP clients. Raises ValueError for an address or token that is none."""
    if not server.startswith(("http://", "https://")):
        raise ValueError(
            f"{server!r} is no address of a server: it begins with http:// or https://."
        )
    headers = {"accept": "application/json", "content-type": "application/json"}
    if token is not None:
        headers["authorization"] = f"Bearer {_sendable(token)}"
    return {"base_url": server, "headers": headers}


def _sendable(token: str) -> str:
    token = token.strip()
    # Refused here because the HTTP library's own refusal quotes the header.
    if not (token.isascii() and token.isprintable()):
        raise ValueError("The token has characters that a token cannot have.")
    return token


def request(call: Call[T], word: str) -> dict[str, Any]:
    """The arguments that both kinds of HTTP client take for a request."""
    return {
        "method": call.method,
        "url": call.path.replace("{word}", word),
        "params": call.params,
        "content": call.content,
        "headers": call.headers,
        "timeout": httpx2.Timeout(call.timeout, connect=10),
    }
