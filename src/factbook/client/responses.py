"""Reading a response: as the answer that it holds, or as the error that it is."""

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import httpx2
import msgspec

from factbook.client.errors import ApiError, ClientError, ProtocolError, UnexpectedAnswer

T = TypeVar("T")


def decode(type_: type[T], response: httpx2.Response) -> T:
    """The body as that type. Raises UnexpectedAnswer when it is none."""
    try:
        return msgspec.json.decode(response.content, type=type_)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        asked = response.request
        raise UnexpectedAnswer(
            f"{asked.method} {asked.url} gave an answer that is not Factbook's: {error}"
        ) from None


def nothing(_: httpx2.Response) -> None:
    """An answer that says no more than that it was done."""
    return


def answer(
    read: Callable[[httpx2.Response], T], response: httpx2.Response, answers: Collection[int] = ()
) -> T:
    """Read a response with `read`. Raises ClientError for one that is an error.

    `answers` are the statuses that `read` understands beside those of success.
    """
    if response.is_success or response.status_code in answers:
        return read(response)
    if response.is_redirect:
        target = response.headers.get("location", "another address")
        raise UnexpectedAnswer(f"{response.request.url} redirects to {target}: use that address.")
    raise refusal(response)


def refusal(response: httpx2.Response) -> ClientError:
    """The error of a response: a REST one, a JSON-RPC one, one of RFC 6750, or a proxy's."""
    status = response.status_code
    try:
        body = msgspec.json.decode(response.content, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = {}
    match body.get("error"):
        case {"code": int(code), "message": str(message), **rest}:
            return ProtocolError(code, message, rest.get("data"))
        case {"name": str(name), "message": str(message), **rest}:
            return ApiError(status, name, message, {str(key): rest[key] for key in rest})
        case str(name):
            return ApiError(status, name, str(body.get("error_description", name)), {})
    reason = response.reason_phrase
    return ApiError(status, reason, f"{response.request.url} answered {status} {reason}.", {})
