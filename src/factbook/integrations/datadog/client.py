"""Collection from Datadog: its two listings, read completely once for all targets of a run.

Searches would take fewer calls for a few targets, but they use an index of their own, in which a
word also matches names and scopes; so there is only this method.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.integrations.datadog import facts
from factbook.integrations.datadog.facts import Listed
from factbook.integrations.datadog.options import Options
from factbook.integrations.datadog.targets import written
from factbook.integrations.integration import Collected
from factbook.outbound import Credential, HttpClient, Memory
from factbook.outbound.outcomes import TOO_MANY, UNUSABLE, Missing, Outcome

# Half of what Datadog allows: a page with long messages stays below the largest answer read.
PAGE: Final = 500
# 100,000 of a kind: beyond it there is no figure rather than a late one.
MOST_PAGES: Final = 200

_INCOMPLETE: Final = Missing(Outcome.TRANSIENT, "answered with errors")
_REPEATED: Final = Missing(Outcome.TRANSIENT, "answered with the same page again")


class _Monitor(msgspec.Struct):
    id: int
    tags: list[str] | None = None


class _Objective(msgspec.Struct):
    id: str
    tags: list[str] | None = None
    monitor_tags: list[str] | None = None


class _Objectives(msgspec.Struct):
    data: list[_Objective]
    errors: list[Any] | None = None


_Page = list[tuple[int | str, frozenset[str]]]


class _Listing(NamedTuple):
    """One of the two: the limit that it counts against, its address, and how a page is read."""

    budget: str
    path: str
    query: Callable[[int], Mapping[str, int]]
    read: Callable[[Any], _Page | Missing]


def credential(name: str, options: Options, _: HttpClient) -> Credential:
    """What proves who asks: both keys."""
    return Credential.fixed(
        name, {"dd-api-key": options.api_key, "dd-application-key": options.application_key}
    )


async def collect(
    targets: Sequence[str], client: HttpClient, _: Memory, __: int
) -> dict[str, Collected]:
    """The facts about each target, or why there are none."""
    async with asyncio.TaskGroup() as group:
        monitors = group.create_task(_listed(client, _MONITORS))
        objectives = group.create_task(_listed(client, _OBJECTIVES))
    return facts.collected(targets, monitors.result(), objectives.result())


async def _listed(client: HttpClient, listing: _Listing) -> Listed | Missing:
    """The tags of everything in a listing, or why it is not known whole.

    The last page is a short one: the count that comes with a page is of that page alone. What moves
    to a later page in between is counted once.
    """
    found: dict[int | str, frozenset[str]] = {}
    for number in range(MOST_PAGES):
        answer = await client.get(listing.path, query=listing.query(number), budget=listing.budget)
        page = listing.read(answer.data) if answer.ok else answer.missing
        if isinstance(page, Missing):
            return page
        before = len(found)
        found.update(page)
        if len(page) < PAGE:
            return list(found.values())
        if len(found) == before:
            return _REPEATED
    return TOO_MANY


def _monitors(data: Any) -> _Page | Missing:
    try:
        monitors = msgspec.convert(data, list[_Monitor])
    except msgspec.ValidationError:
        return UNUSABLE
    return [(one.id, _written(one.tags)) for one in monitors]


def _objectives(data: Any) -> _Page | Missing:
    try:
        answer = msgspec.convert(data, _Objectives)
    except msgspec.ValidationError:
        return UNUSABLE
    if answer.errors:
        return _INCOMPLETE
    return [(one.id, _written(one.tags, one.monitor_tags)) for one in answer.data]


def _written(*lists: Iterable[str] | None) -> frozenset[str]:
    return frozenset(written(tag) for tags in lists for tag in tags or ())


_MONITORS: Final = _Listing(
    "monitors",
    "/api/v1/monitor",
    lambda number: {"page": number, "page_size": PAGE},
    _monitors,
)
_OBJECTIVES: Final = _Listing(
    "slos",
    "/api/v1/slo",
    lambda number: {"limit": PAGE, "offset": number * PAGE},
    _objectives,
)
