"""The client's requests as values, each with the reader of its answer. Here: sets.

`catalog_calls` and `tool_calls` have the others.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import httpx2
import msgspec

from factbook.client.answers import PushAnswer, SetItemPage
from factbook.client.responses import decode
from factbook.schemas.catalog import Revision, Revisions, Sets, SetSummary

T = TypeVar("T")
Parameters = list[tuple[str, str]]

# `{word}` is the client's push word; whatever else is put into a path has its braces encoded.
_PUSH = "/api/catalog/{word}-entities"
TIMEOUT = 60.0
# A set of 100,000 entities takes the server half a minute, and a slow disk or network longer.
_PUSH_TIMEOUT = 900.0


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T]):
    """A request, and how its answer is read; `timeout` is how long to wait for it, in seconds.

    `answers` are the statuses that are answers as well, beside those of success.
    """

    method: str
    path: str
    read: Callable[[httpx2.Response], T]
    params: Parameters = field(default_factory=list)
    content: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    timeout: float = TIMEOUT
    answers: Collection[int] = ()


def parameters(**values: object) -> Parameters:
    """Query parameters without those that are None; a list gives one for each of its elements."""
    found: Parameters = []
    for name, value in values.items():
        if isinstance(value, (list, tuple)):
            found += [(name, str(each)) for each in value]
        elif value is not None:
            found.append((name, str(value)))
    return found


def get(path: str, answer: type[T], **params: object) -> Call[T]:
    """A call that reads something; parameters that are None are left out."""
    return Call(method="GET", path=path, read=partial(decode, answer), params=parameters(**params))


def send(
    method: str, path: str, answer: type[T], body: object = None, *, timeout: float = TIMEOUT
) -> Call[T]:
    """A call that changes something, with a body unless that is None."""
    content = None if body is None else msgspec.json.encode(body)
    read = partial(decode, answer)
    return Call(method=method, path=path, read=read, content=content, timeout=timeout)


def segment(text: str) -> str:
    """A text as one segment of a path: dots alone would lead to another one."""
    return text.replace(".", "%2E") if text in {".", ".."} else quote(text, safe="")


def _set_path(set_id: str) -> str:
    return f"{_PUSH}/sets/{segment(set_id)}"


def push(
    set_id: str,
    entities: Iterable[Mapping[str, Any] | msgspec.Raw],
    *,
    dry_run: bool = False,
    on_conflict: str | None = None,
    max_removals: int | str | None = None,
    if_match: int | None = None,
) -> Call[PushAnswer]:
    """Replace the content of a set by these entities, and return the changes.

    With `dry_run` nothing is written. `on_conflict="take"` takes over references that another set
    holds. A push that would remove more than `max_removals` entities (or per cent: `"10%"`), or
    whose set has left the revision `if_match`, raises ApiError (409, 412), as one with an entity
    that is not valid does (400); then nothing was written.
    """
    return Call(
        method="PUT",
        path=_set_path(set_id),
        read=partial(decode, PushAnswer),
        params=parameters(
            dryRun="true" if dry_run else None, onConflict=on_conflict, maxRemovals=max_removals
        ),
        content=msgspec.json.encode({"items": list(entities)}),
        headers={} if if_match is None else {"if-match": f'"{if_match}"'},
        timeout=_PUSH_TIMEOUT,
    )


def sets() -> Call[list[SetSummary]]:
    """Every set that has entities."""
    return Call(
        method="GET", path=f"{_PUSH}/sets", read=lambda response: decode(Sets, response).sets
    )


def set(set_id: str, *, limit: int | None = None, cursor: str | None = None) -> Call[SetItemPage]:
    """The entities of a set: all of them, or `limit` of them from `cursor` on."""
    return get(_set_path(set_id), SetItemPage, limit=limit, cursor=cursor)


def delete_set(set_id: str) -> Call[PushAnswer]:
    """Remove every entity of a set, and return the changes. Its revisions can still be restored."""
    return send("DELETE", _set_path(set_id), PushAnswer, timeout=_PUSH_TIMEOUT)


def revisions(set_id: str) -> Call[list[Revision]]:
    """The pushes that changed a set, as many as the server keeps."""
    return Call(
        method="GET",
        path=f"{_set_path(set_id)}/revisions",
        read=lambda response: decode(Revisions, response).revisions,
    )


def restore(
    set_id: str,
    revision: int,
    *,
    on_conflict: str | None = None,
    max_removals: int | str | None = None,
) -> Call[PushAnswer]:
    """Put the content that a set had at a revision back, as a new one; options as for `push`."""
    return Call(
        method="POST",
        path=f"{_set_path(set_id)}/revisions/{revision}/restore",
        read=partial(decode, PushAnswer),
        params=parameters(onConflict=on_conflict, maxRemovals=max_removals),
        timeout=_PUSH_TIMEOUT,
    )
