"""Answers with fewer bytes."""

import gzip
from functools import lru_cache

from factbook.http.requests import Reply, Request, offloaded

_SMALLEST = 1_400  # fits into one packet
_LARGE = 256 * 1024  # others would wait for it
_QUICK, _SMALL = 4, 9


async def compressed(reply: Reply, request: Request) -> Reply:
    """The reply to a GET, compressed where that makes it smaller and the browser reads it.

    Answers to forms stay as they are: some of them show a secret.
    """
    body = reply.body
    if request.method != "GET" or not isinstance(body, bytes) or len(body) < _SMALLEST:
        return reply
    headers = {**reply.headers, "vary": "accept-encoding"}
    if b"gzip" not in request.headers.get(b"accept-encoding", b""):
        return reply._replace(headers=headers)
    # An asset that is kept for ever is the same for everybody.
    is_kept = "immutable" in reply.headers.get("cache-control", "")
    if is_kept:
        smaller = _kept(body)
    elif len(body) > _LARGE:
        smaller = await offloaded(_quickly, body)
    else:
        smaller = _quickly(body)
    return reply._replace(body=smaller, headers={**headers, "content-encoding": "gzip"})


def _quickly(body: bytes) -> bytes:
    return gzip.compress(body, _QUICK, mtime=0)


@lru_cache(maxsize=16)
def _kept(body: bytes) -> bytes:
    return gzip.compress(body, _SMALL, mtime=0)
