"""The audit over HTTP: writes and refusals with their actors, for tokens that may read them."""

from typing import Any, Final

from msgspec import UNSET

from factbook.api.openapi.parameter_types import Choice, Moment, Text
from factbook.api.openapi.parameters import FACTS_LIMIT
from factbook.audit import json_lines, trail
from factbook.audit.trail import ACTIONS, LONGEST
from factbook.http.context import State
from factbook.http.requests import JsonReply, Request, reply
from factbook.schemas.access import AuditLine, AuditPage

_PAGE = 100
NDJSON: Final = "application/x-ndjson"

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
    pattern=json_lines.CURSOR,
    wrong="has to be the nextCursor of a page",
)
AFTER: Final = Text(
    name="after",
    description="The `cursor` of the last line that is known: those behind it come.",
    pattern=json_lines.CURSOR,
    wrong="has to be the cursor of a line",
)
_FILTERS: Final = (ACTOR, ACTION, OBJECT, OUTCOME, SINCE, UNTIL)
PARAMETERS: Final = (*_FILTERS, FACTS_LIMIT, CURSOR)
EXPORT_PARAMETERS: Final = (*_FILTERS, AFTER)


async def list_records(request: Request, state: State) -> JsonReply[AuditPage]:
    """Audit records of writes and refusals, newest first.

    `status` is that of the answer over HTTP, 0 on the command line; `token` is the id of the token.
    What a process refused is there at once when the same process is asked, else a moment later.
    """
    asked = _asked(request, CURSOR)
    limit = FACTS_LIMIT.of(request) or _PAGE
    await state.refusals.write()
    found, more = await trail.page(state.database, **asked, limit=limit)
    next_cursor = json_lines.cursor(found[-1]) if more else UNSET
    return reply(AuditPage([*map(json_lines.shown, found)], next_cursor))


async def export(request: Request, state: State) -> JsonReply[AuditLine]:
    """Audit records of writes and refusals as JSON lines, oldest first, from one snapshot.

    A line is a record with its `cursor`. A record has the time at which its write began: who goes
    on behind the last line asks for an `until` of five minutes ago, so that none comes in before.
    """
    asked = _asked(request, AFTER)
    await state.refusals.write()
    lines = json_lines.lines(state.database, **asked)
    return JsonReply(lines, content_type=NDJSON.encode())


def _asked(request: Request, place: Text) -> dict[str, Any]:
    cursor = place.of(request)
    return {
        "actor": ACTOR.of(request),
        "action": ACTION.of(request),
        "object": OBJECT.of(request),
        "outcome": OUTCOME.of(request),
        "since": SINCE.of(request),
        "until": UNTIL.of(request),
        "after": None if cursor is None else json_lines.place(cursor),
    }
