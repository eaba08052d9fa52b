"""Administration → Audit: the log of actions and refusals."""

import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import msgspec

from factbook.audit import json_lines, trail
from factbook.audit.trail import ACTIONS, COMMAND_LINE, LONGEST, AuditPosition, Record
from factbook.auth import users
from factbook.auth.permissions import AUDIT_READ, TOKEN_MANAGE
from factbook.clock import DAY, SECOND
from factbook.errors import InputError, UnavailableError
from factbook.http.pipeline import begun
from factbook.http.requests import Reply
from factbook.web.site import formats
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

PATH: Final = "/administration/audit"
_PAGE = 50
_FILTERS = ("actor", "action", "object", "outcome", "from", "to")
_OUTCOMES = [("", "Any"), ("done", "Done"), ("refused", "Refused")]


class AuditRow(NamedTuple):
    """A row of the audit for display; `path` is the page of its object, if any."""

    record: Record
    title: str
    object: str
    path: str | None
    detail: dict[str, Any]


async def show(visit: PageContext) -> Reply:
    """Page of actions and refusals, newest first."""
    given = {name: visit.query(name)[:LONGEST] for name in _FILTERS}
    try:
        records, more = await _found(visit, given)
        problem, status = "", 200
    except InputError as error:
        records, more, problem, status = [], False, error.message, error.status
    except UnavailableError as error:
        records, more, status = [], False, error.status
        problem = f"{error.message} Choose a shorter time, an actor or an object."
    asked = {name: value for name, value in given.items() if value}
    return visit.page(
        "audit.html",
        status,
        rows=[_shown(visit, record) for record in records],
        first=_address(asked) if visit.query("before") else None,
        more=_address({**asked, "before": json_lines.cursor(records[-1])}) if more else None,
        export=_address(asked, f"{PATH}/export") if records else None,
        given=given,
        filtered=bool(asked),
        actions=[("", "Any"), *ACTIONS.items()],
        outcomes=_OUTCOMES,
        problem=problem,
    )


async def export(visit: PageContext) -> Reply:
    """Download of the same as JSON lines, oldest first."""
    wanted = _wanted({name: visit.query(name)[:LONGEST] for name in _FILTERS})
    await visit.state.refusals.write()
    lines = json_lines.lines(visit.state.database, **wanted)
    headers = {"content-disposition": 'attachment; filename="audit.jsonl"'}
    return Reply(await begun(lines), headers=headers, content_type=b"application/x-ndjson")


async def _found(visit: PageContext, given: dict[str, str]) -> tuple[list[Record], bool]:
    wanted, after = _wanted(given), _place(visit.query("before"))
    # What this process refused is there at once.
    await visit.state.refusals.write()
    return await trail.page(visit.state.database, **wanted, after=after, limit=_PAGE)


def _wanted(given: dict[str, str]) -> dict[str, Any]:
    """Conditions of the filters; raises InputError for an invalid day."""
    until = _day(given["to"])
    return {
        "actor": _actor(given["actor"]),
        "action": given["action"] or None,
        "object": given["object"] or None,
        "outcome": given["outcome"] or None,
        "since": _day(given["from"]),
        "until": None if until is None else until + DAY - 1,
    }


def _actor(text: str) -> str | None:
    """Reference of the actor in the text; a name alone is a person's."""
    if not text or ":" in text or text == COMMAND_LINE:
        return text or None
    try:
        return users.reference(text)
    except InputError:
        return text


def _day(text: str) -> int | None:
    """Start of a day in milliseconds; raises InputError for an invalid one."""
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise InputError("A date is written as 2026-01-31.") from None
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * SECOND


def _place(text: str) -> AuditPosition | None:
    if not text:
        return None
    if not re.fullmatch(json_lines.CURSOR, text):
        raise InputError("There is no such page of the audit.")
    return json_lines.place(text)


def _address(query: dict[str, str], path: str = PATH) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _shown(visit: PageContext, record: Record) -> AuditRow:
    title = ACTIONS.get(record.action, record.action)
    detail: dict[str, Any] = msgspec.json.decode(record.detail)
    more = {
        "action": record.action,
        "object": record.object,
        "status": record.status or None,
        "token": record.token or None,
    }
    # What was recorded of it stands last: none of its names hides one of these.
    shown: dict[str, Any] = {name: value for name, value in more.items() if value is not None}
    shown = {**shown, **({"detail": detail} if detail else {})}
    return AuditRow(record, title, _object(record, detail), _path(visit, record), shown)


def _object(record: Record, detail: dict[str, Any]) -> str:
    """Display name of the object; for a token its name, because nobody knows its id."""
    if record.action.startswith("token."):
        return str(detail.get("name", record.object))
    return formats.short_ref(record.object)


def _path(visit: PageContext, record: Record) -> str | None:
    """Page of the object; None if there is none, or none any more."""
    subject, _, verb = record.action.partition(".")
    name = record.object
    if verb == "delete" or not name:
        return None
    if subject == "set":
        return f"/sets/{formats.segment(name)}"
    if subject == "entity":
        return formats.entity_path(name)
    if subject in {"data-source", "facts"}:
        return f"/data-sources/{formats.segment(name)}"
    if visit.may(TOKEN_MANAGE) and name.startswith("user:default/"):
        return f"/administration/people/{formats.segment(formats.name_of(name))}"
    return None


AUDIT: Sequence[PageRoute] = (
    PageRoute("GET", PATH, show, (AUDIT_READ,)),
    PageRoute("GET", f"{PATH}/export", export, (AUDIT_READ,)),
)
