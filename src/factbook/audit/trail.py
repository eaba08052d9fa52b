"""The audit: an append-only log of actions and refusals, with actor and origin.

A write is recorded in its own transaction: the record exists exactly when the write does.
"""

import itertools
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, TypeVar

import msgspec

from factbook.storage import Database, Transaction, Write
from factbook.telemetry.logs import redact_text

T = TypeVar("T")

# What is recorded, and its title for people.
ACTIONS: Final[Mapping[str, str]] = {
    "set.push": "Push a set",
    "set.restore": "Restore a revision of a set",
    "set.delete": "Delete a set",
    "importer.create": "Make an importer",
    "importer.replace": "Change an importer",
    "importer.delete": "Delete an importer",
    "import.run": "Ask for an import",
    "import.write": "Write what was imported",
    "import.apply": "Apply removals that an importer holds",
    "import.discard": "Discard removals that an importer holds",
    "entity.put": "Add or update an entity",
    "entity.delete": "Delete an entity",
    "entity.refresh": "Ask for an entity's facts",
    "token.create": "Make a token",
    "token.revoke": "Revoke a token",
    "data-source.create": "Define a data source",
    "data-source.replace": "Change the draft of a data source",
    "data-source.publish": "Publish a data source",
    "data-source.delete": "Delete a data source",
    "data-source.run": "Run a data source",
    "facts.push": "Push facts",
    "check.create": "Define a check",
    "check.replace": "Change the draft of a check",
    "check.publish": "Publish a check",
    "check.delete": "Delete a check",
    "scorecard.create": "Define a scorecard",
    "scorecard.replace": "Change the draft of a scorecard",
    "scorecard.publish": "Publish a scorecard",
    "scorecard.delete": "Delete a scorecard",
    "exemption.request": "Ask for an exemption",
    "exemption.approve": "Approve an exemption",
    "exemption.deny": "Deny an exemption",
    "exemption.revoke": "Revoke an exemption",
    "exemption.expire": "End an exemption on its day",
    "session.start": "Sign in",
    "session.end": "Sign out",
    "client.register": "Register a client",
    "consent.give": "Let a client do something",
    "consent.revoke": "End what a client may do",
    "person.invite": "Invite a person",
    "person.withdraw": "Withdraw an invitation",
    "person.create": "Add a person",
    "person.change": "Change a person",
    "person.delete": "Delete a person",
    "person.erase": "Erase the data of a person",
    "connection.create": "Add a connection",
    "connection.replace": "Change a connection",
    "connection.delete": "Delete a connection",
    "scim.create": "Add a person or group by SCIM",
    "scim.replace": "Replace a person or group by SCIM",
    "scim.patch": "Change a person or group by SCIM",
    "scim.delete": "Delete a person or group by SCIM",
    "webhook.create": "Add a webhook",
    "webhook.enable": "Enable a webhook",
    "webhook.delete": "Delete a webhook",
    "digest.create": "Add a digest",
    "digest.replace": "Change a digest",
    "digest.delete": "Delete a digest",
    "database.restore": "Restore the database",
    "clock.confirm": "Confirm the clock",
    "call.refused": "Refused call",
}
COMMAND_LINE: Final = "command line"

Outcome = Literal["done", "refused"]

# Characters of a text; an index of PostgreSQL takes no longer ones.
LONGEST: Final = 640
_LARGEST_DETAIL = 2 * 1024
_LAST = 2**63 - 1


class Record(NamedTuple):
    """A row of the audit; `detail` is JSON, `grant` what allowed it, empty if nothing had to."""

    at: int
    id: str
    actor: str
    action: str
    object: str
    outcome: Outcome
    status: int
    address: str
    token: str
    detail: str
    grant: str = ""


class Caller(NamedTuple):
    """Actor of a request, its time, its address, the id of its token, and what allows it."""

    actor: str
    at: int
    address: str = ""
    token: str = ""
    grant: str = ""


class AuditEntry(NamedTuple):
    """An action and its object; `grant` is what allowed it, if not what lets the caller in."""

    action: str
    object: str
    detail: Mapping[str, Any] = {}
    grant: str = ""


class AuditPosition(NamedTuple):
    """Position at which a page ended."""

    at: int
    id: str


# What to record of a write, told from its result; None for nothing.
About = Callable[[Any], AuditEntry | None]


def record(caller: Caller, entry: AuditEntry, outcome: Outcome = "done", status: int = 0) -> Record:
    """Row of an entry, with secrets removed and long texts cut.

    The status is that of the answer over HTTP.
    """
    assert entry.action in ACTIONS, entry.action
    return Record(
        caller.at,
        # Rows of one millisecond stay in their order.
        f"{next(_numbers) & 0xFFFFFFFF:08x}{secrets.token_hex(4)}",
        clean(caller.actor),
        entry.action,
        clean(entry.object),
        outcome,
        status,
        clean(caller.address),
        caller.token,
        _detail(entry.detail),
        clean(entry.grant or caller.grant),
    )


def clean(text: str) -> str:
    """Text in the form that the audit holds: printable, without secrets, bounded in length."""
    text = redact_text(text)[:LONGEST]
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def append(transaction: Transaction, record: Record) -> None:
    """Add a row."""
    transaction.run(_INSERT, record)


def append_all(transaction: Transaction, records: Iterable[Record]) -> None:
    """Add rows."""
    transaction.many(_INSERT, records)


def audited(
    work: Callable[[Transaction], T], caller: Caller, about: AuditEntry | About, status: int = 0
) -> Callable[[Transaction], T]:
    """Wrap work so that it is recorded in its own transaction."""

    def recorded(transaction: Transaction) -> T:
        result = work(transaction)
        entry = about if isinstance(about, AuditEntry) else about(result)
        if entry is not None:
            append(transaction, record(caller, entry, status=status))
        return result

    return recorded


def writing(
    database: Database, caller: Caller, about: AuditEntry | About, status: int = 0
) -> Write:
    """Transaction runner that records the write in the same transaction."""

    def write(function: Callable[[Transaction], T]) -> Awaitable[T]:
        return database.write(audited(function, caller, about, status))

    return write


async def page(
    database: Database,
    *,
    actor: str | None = None,
    action: str | None = None,
    object: str | None = None,
    outcome: str | None = None,
    since: int | None = None,
    until: int | None = None,
    after: AuditPosition | None = None,
    limit: int,
) -> tuple[list[Record], bool]:
    """Up to `limit` rows after the place, newest first, and whether there are more.

    `since` and `until` are inclusive. Raises UnavailableError when it takes longer than a search
    may.
    """
    condition, values = _conditions(actor=actor, action=action, object=object, outcome=outcome)
    end = AuditPosition(_LAST if until is None else until + 1, "")
    if after is not None:
        end = min(end, after)
    rows = await database.search(
        _PAGE.replace("{}", condition), (*end, since or 0, *values, limit + 1)
    )
    return [Record(*row) for row in rows[:limit]], len(rows) > limit


async def export(
    database: Database,
    *,
    since: int | None = None,
    until: int | None = None,
    after: AuditPosition | None = None,
    **wanted: str | None,
) -> AsyncIterator[list[Record]]:
    """Rows after the place, oldest first, from one snapshot, in portions.

    `wanted` is an actor, an action, an object or an outcome. `since` and `until` are inclusive.
    """
    condition, values = _conditions(**wanted)
    begin = max(AuditPosition(since or 0, ""), after or AuditPosition(0, ""))
    end = _LAST if until is None else until
    sql = _EXPORT.replace("{}", condition)
    async for rows in database.pages(sql, (*begin, end, *values)):
        yield [Record(*row) for row in rows]


def _conditions(**wanted: str | None) -> tuple[str, list[str]]:
    """SQL conditions on the columns, and their values."""
    given = {name: clean(value) for name, value in wanted.items() if value is not None}
    # An object has few rows; an expression keeps SQLite from looking through another index.
    rest = " || ''" if "object" in given else ""
    condition = "".join(f" AND {name}{rest if name != 'object' else ''} = ?" for name in given)
    return condition, list(given.values())


def _detail(detail: Mapping[str, Any]) -> str:
    if not detail:
        return "{}"
    text = msgspec.json.encode({name: _cleaned(value) for name, value in detail.items()})
    return text.decode() if len(text) <= _LARGEST_DETAIL else '{"truncated":true}'


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    return [_cleaned(each) for each in value] if isinstance(value, list | tuple) else value


_numbers = itertools.count()

_INSERT = """
INSERT INTO audit (at, id, actor, action, object, outcome, status, address, token, detail,
granted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""

_PAGE = """
SELECT at, id, actor, action, object, outcome, status, address, token, detail, granted FROM audit
WHERE (at, id) < (?, ?) AND at >= ?{} ORDER BY at DESC, id DESC LIMIT ?
"""

_EXPORT = """
SELECT at, id, actor, action, object, outcome, status, address, token, detail, granted FROM audit
WHERE (at, id) > (?, ?) AND at <= ?{} ORDER BY at, id
"""
