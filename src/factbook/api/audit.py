"""The audit over HTTP: who did what, and what was refused, to those who may read it."""

from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from factbook.api.parameter import Choice, Moment, Text
from factbook.api.parameters import FACTS_LIMIT
from factbook.api.wire import Time, Wire
from factbook.auth import audit
from factbook.auth.audit import ACTIONS, LONGEST, Place, Record
from factbook.clock import iso
from factbook.edge.requests import Reply, Request, reply
from factbook.edge.state import State

_PAGE = 100

ACTOR: Final = Text(
    name="actor",
    description="Only what this user did: an entity reference, or `command line`; empty for calls "
    "of which nobody is known.",
    longest=LONGEST,
    example="user:default/kim",
)
ACTION: Final = Choice(
    name="action",
    description="Only what was done in this way.",
    words=tuple(ACTIONS),
    example="set.push",
)
OBJECT: Final = Text(
    name="object",
    description="Only what was done to this: the id of a set, token or data source, the reference "
    "of an entity, or the path of a refused call.",
    longest=LONGEST,
    example="payments",
)
OUTCOME: Final = Choice(
    name="outcome", description="Only what was done, or was refused.", words=("done", "refused")
)
SINCE: Final = Moment(
    name="since",
    description="Only what happened at this time or later: ISO 8601 with a UTC offset.",
    example="2026-01-01T00:00:00Z",
)
UNTIL: Final = Moment(
    name="until",
    description="Only what happened at this time or earlier.",
    example="2030-01-01T00:00:00Z",
)
CURSOR: Final = Text(
    name="cursor",
    description="The `nextCursor` of the page before.",
    pattern="[0-9]{1,15}/[0-9a-f]{16}",
    wrong="has to be the nextCursor of a page",
)
PARAMETERS: Final = (ACTOR, ACTION, OBJECT, OUTCOME, SINCE, UNTIL, FACTS_LIMIT, CURSOR)


class AuditRecord(Wire):
    """Something that was done, or was refused."""

    id: str
    at: Time
    actor: str
    action: str
    object: str
    outcome: str
    status: int
    address: str
    token: str
    detail: dict[str, Any]


class AuditPage(Wire):
    """Records, newest first."""

    records: list[AuditRecord]
    next_cursor: str | UnsetType = UNSET


async def list_records(request: Request, state: State) -> Reply:
    """What was done and what was refused, newest first.

    `status` is that of the answer over HTTP, 0 on the command line; `token` is the id of the token.
    What a process refused is there at once when the same process is asked, else a moment later.
    """
    cursor = CURSOR.of(request)
    asked = {
        "actor": ACTOR.of(request),
        "action": ACTION.of(request),
        "object": OBJECT.of(request),
        "outcome": OUTCOME.of(request),
    }
    since, until = SINCE.of(request), UNTIL.of(request)
    limit = FACTS_LIMIT.of(request) or _PAGE
    await state.refusals.write()
    found, more = await audit.page(
        state.database,
        **asked,
        since=since,
        until=until,
        after=None if cursor is None else _place(cursor),
        limit=limit,
    )
    body: dict[str, Any] = {"records": [_shown(record) for record in found]}
    if more:
        body["nextCursor"] = f"{found[-1].at}/{found[-1].id}"
    return reply(body)


def _place(cursor: str) -> Place:
    at, _, id_ = cursor.partition("/")
    return Place(int(at), id_)


def _shown(record: Record) -> dict[str, Any]:
    shown = record._asdict()
    return {**shown, "at": iso(record.at), "detail": msgspec.Raw(record.detail.encode())}
