"""Administration → Audit: the log of actions and refusals."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from itertools import groupby
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import msgspec

from factbook.audit import json_lines, trail
from factbook.audit.trail import ACTIONS, COMMAND_LINE, LONGEST, AuditPosition, Record
from factbook.auth import users
from factbook.auth.permissions import AUDIT_READ, TOKEN_MANAGE
from factbook.clock import DAY, SECOND
from factbook.errors import InputError, UnavailableError
from factbook.http.pipeline import begin_pieces
from factbook.http.requests import Reply
from factbook.web.site import formats
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

PATH: Final = "/administration/audit"
_PAGE = 50
# Records that are folded into the rows of a page.
_FOLDED = 250
_FILTERS = ("actor", "action", "object", "outcome", "from", "to")
_OUTCOMES = [("", "Any"), ("done", "Done"), ("refused", "Refused")]
# Actions whose objects are references of entities: of one kind they are equal.
_OF_ENTITIES = frozenset({"entity", "facts"})


class AuditRow(NamedTuple):
    """A row of the audit for display; `path` is the page of its object, if any.

    It stands for `number` equal records, the `oldest` last; `unfolded` leads to all of them.
    """

    record: Record
    title: str
    object: str
    path: str | None
    detail: dict[str, Any]
    number: int
    oldest: Record
    unfolded: str


class FoldedRecords(NamedTuple):
    """Equal records in a row, newest first; with several objects, `kind` is that of all of them."""

    records: list[Record]
    kind: str | None

    @property
    def newest(self) -> Record:
        return self.records[0]

    @property
    def oldest(self) -> Record:
        return self.records[-1]

    @property
    def things(self) -> int:
        """The number of different objects."""
        return len({record.object for record in self.records})


async def show(visit: PageContext) -> Reply:
    """Page of actions and refusals, newest first, those that are equal in one row."""
    given = {name: visit.query(name)[:LONGEST] for name in _FILTERS}
    is_folded = visit.query("fold") != "no"
    try:
        found, more = await _found(visit, given, is_folded)
        problem, status = "", 200
    except InputError as error:
        found, more, problem, status = [], False, error.message, error.status
    except UnavailableError as error:
        found, more, status = [], False, error.status
        problem = f"{error.message} Choose a shorter time, an actor or an object."
    asked = {name: value for name, value in given.items() if value}
    shown = asked if is_folded else {**asked, "fold": "no"}
    return visit.page(
        "audit.html",
        status,
        rows=_rows(visit, found, asked),
        first=_address(shown) if visit.query("before") else None,
        more=_address({**shown, "before": json_lines.cursor(found[-1].oldest)}) if more else None,
        export=_address(asked, f"{PATH}/export") if found else None,
        folding=_address(asked) if not is_folded else None,
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
    return Reply(await begin_pieces(lines), headers=headers, content_type=b"application/x-ndjson")


async def _found(
    visit: PageContext, given: dict[str, str], is_folded: bool
) -> tuple[list[FoldedRecords], bool]:
    """The records of a page, and true if there are more."""
    wanted, after = _wanted(given), _place(visit.query("before"))
    # What this process refused is there at once.
    await visit.state.refusals.write()
    limit = _FOLDED if is_folded else _PAGE
    records, more = await trail.page(visit.state.database, **wanted, after=after, limit=limit)
    found = _folded(records) if is_folded else _alone(records)
    return found[:_PAGE], more or len(found) > _PAGE


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
        return users.make_user_ref(text)
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


def _rows(
    visit: PageContext, found: Sequence[FoldedRecords], asked: dict[str, str]
) -> list[AuditRow]:
    rows, before = [], visit.query("before")
    for each in found:
        place = {"before": before} if before else {}
        unfolded = _address({**asked, "fold": "no", **place})
        rows.append(_shown(visit, each, unfolded))
        before = json_lines.cursor(each.oldest)
    return rows


def _shown(visit: PageContext, found: FoldedRecords, unfolded: str) -> AuditRow:
    record = found.newest
    title = ACTIONS.get(record.action, record.action)
    detail: dict[str, Any] = msgspec.json.decode(record.detail)
    more = {
        "action": record.action,
        "object": record.object,
        "status": record.status or None,
        "token": record.token or None,
        "grant": record.grant or None,
    }
    # What was recorded of it stands last: none of its names hides one of these.
    shown: dict[str, Any] = {name: value for name, value in more.items() if value is not None}
    shown = {**shown, **({"detail": detail} if detail else {})}
    several = found.kind and f"{found.things} of kind {found.kind}"
    return AuditRow(
        record,
        title,
        several or _object(record, detail),
        None if several else _path(visit, record),
        shown,
        len(found.records),
        found.oldest,
        unfolded,
    )


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


def _folded(records: Iterable[Record]) -> list[FoldedRecords]:
    """Fold records by the same person, in the same way, of the same action on the same thing."""
    return [_fold(list(same)) for _, same in groupby(records, _key)]


def _alone(records: Iterable[Record]) -> list[FoldedRecords]:
    """Each record by itself."""
    return [FoldedRecords([record], None) for record in records]


def _fold(records: list[Record]) -> FoldedRecords:
    has_several = any(record.object != records[0].object for record in records)
    return FoldedRecords(records, _thing(records[0]) if has_several else None)


def _key(record: Record) -> tuple[str, ...]:
    who = (record.actor, record.address, record.token, record.grant)
    return (*who, record.action, record.outcome, _thing(record))


def _thing(record: Record) -> str:
    """The kind of an entity, or the object itself."""
    kind, colon, _ = record.object.partition(":")
    is_entity = record.action.partition(".")[0] in _OF_ENTITIES and colon
    return kind if is_entity else record.object


AUDIT: Sequence[PageRoute] = (
    PageRoute("GET", PATH, show, (AUDIT_READ,)),
    PageRoute("GET", f"{PATH}/export", export, (AUDIT_READ,)),
)
