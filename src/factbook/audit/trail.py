"""The audit: an append-only log of actions and refusals, with actor and origin.

A write is recorded in its own transaction, so the record exists if and only if the write does. The
audit is exported as JSON lines, one per record, oldest first; old records are deleted.
"""

import itertools
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, Literal, NamedTuple, TypeVar

import msgspec

from factbook.clock import DAY, MINUTE, Throttle, iso
from factbook.schemas.events import AuditLine, AuditRecord
from factbook.storage import Database, Transaction, Write
from factbook.storage.partitions import MonthlyTable, Partition, replace_gone_partitions
from factbook.telemetry.logs import redact_text

T = TypeVar("T")

# Recorded actions, and their titles for users.
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

# Maximum characters of a text, which PostgreSQL can still index.
LONGEST: Final = 640
_LARGEST_DETAIL = 2 * 1024
_LAST = 2**63 - 1


class Record(NamedTuple):
    """A row of the audit; `detail` is JSON, `grant` the grant that allowed it, or empty."""

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
    """Actor of a request, its time, its address, its token id, and the grant that allows it."""

    actor: str
    at: int
    address: str = ""
    token: str = ""
    grant: str = ""


class AuditEntry(NamedTuple):
    """An action and its object; `grant` overrides the caller's grant."""

    action: str
    object: str
    detail: Mapping[str, Any] = {}
    grant: str = ""


class AuditPosition(NamedTuple):
    """Position at which a page ended."""

    at: int
    id: str


# Makes the entry to record from a write's result; None records nothing.
About = Callable[[Any], AuditEntry | None]


def make_record(
    caller: Caller, entry: AuditEntry, outcome: Outcome = "done", status: int = 0
) -> Record:
    """Row of an entry, with secrets removed and long texts truncated.

    `status` is the HTTP status.
    """
    assert entry.action in ACTIONS, entry.action
    members = {name: _clean_value(value) for name, value in entry.detail.items()}
    detail = msgspec.json.encode(members)
    return Record(
        caller.at,
        # Rows of the same millisecond keep their order.
        f"{next(_numbers) & 0xFFFFFFFF:08x}{secrets.token_hex(4)}",
        clean_text(caller.actor),
        entry.action,
        clean_text(entry.object),
        outcome,
        status,
        clean_text(caller.address),
        caller.token,
        detail.decode() if len(detail) <= _LARGEST_DETAIL else '{"truncated":true}',
        clean_text(entry.grant or caller.grant),
    )


def clean_text(text: str) -> str:
    """Text as the audit stores it: printable, without secrets, limited in length."""
    text = redact_text(text)[:LONGEST]
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def append_record(transaction: Transaction, record: Record) -> None:
    """Add a row."""
    transaction.run(_INSERT, record)


def append_records(transaction: Transaction, records: Iterable[Record]) -> None:
    """Add rows."""
    transaction.many(_INSERT, records)


def audit_work(
    work: Callable[[Transaction], T], caller: Caller, about: AuditEntry | About, status: int = 0
) -> Callable[[Transaction], T]:
    """Wrap work so that it is recorded in its own transaction."""

    def recorded(transaction: Transaction) -> T:
        result = work(transaction)
        entry = about if isinstance(about, AuditEntry) else about(result)
        if entry is not None:
            append_record(transaction, make_record(caller, entry, status=status))
        return result

    return recorded


def audit_writes(
    database: Database, caller: Caller, about: AuditEntry | About, status: int = 0
) -> Write:
    """Transaction runner that records the write in the same transaction."""

    def write(function: Callable[[Transaction], T]) -> Awaitable[T]:
        return database.write(audit_work(function, caller, about, status))

    return write


async def page_audit(
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
    """Up to `limit` rows after the position, newest first, and true if there are more.

    `since` and `until` are inclusive. Raises UnavailableError if it exceeds the time limit for
    searches.
    """
    condition, values = _render_conditions(
        actor=actor, action=action, object=object, outcome=outcome
    )
    end = AuditPosition(_LAST if until is None else until + 1, "")
    if after is not None:
        end = min(end, after)
    rows = await database.search(
        _PAGE.replace("{}", condition), (*end, since or 0, *values, limit + 1)
    )
    return [Record(*row) for row in rows[:limit]], len(rows) > limit


async def export_audit(
    database: Database,
    *,
    since: int | None = None,
    until: int | None = None,
    after: AuditPosition | None = None,
    **wanted: str | None,
) -> AsyncIterator[list[Record]]:
    """Rows after the position, oldest first, from one snapshot, in portions.

    `wanted` is an actor, an action, an object or an outcome. `since` and `until` are inclusive.
    """
    condition, values = _render_conditions(**wanted)
    begin = max(AuditPosition(since or 0, ""), after or AuditPosition(0, ""))
    end = _LAST if until is None else until
    sql = _EXPORT.replace("{}", condition)
    async for rows in database.pages(sql, (*begin, end, *values)):
        yield [Record(*row) for row in rows]


def _render_conditions(**wanted: str | None) -> tuple[str, list[str]]:
    """SQL conditions on the columns, and their values."""
    given = {name: clean_text(value) for name, value in wanted.items() if value is not None}
    # An object has few rows; the expression keeps SQLite from choosing another index.
    rest = " || ''" if "object" in given else ""
    condition = "".join(f" AND {name}{rest if name != 'object' else ''} = ?" for name in given)
    return condition, list(given.values())


def _clean_value(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    return [_clean_value(each) for each in value] if isinstance(value, list | tuple) else value


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


# A record's time is when its write began. After this long, the write has committed or failed.
SETTLED: Final = 5 * MINUTE
AUDIT_CURSOR: Final = r"[0-9]{1,15}/[0-9a-f]{16}"


class ClockWatch:
    """Warns once whenever the clock falls behind the last exported record.

    Records are ordered by time, so records written meanwhile sort before the last exported one.
    """

    def __init__(self, warn: Callable[[str], object]) -> None:
        self._warn = warn
        self._is_back = False

    def look(self, now: int, last: AuditPosition | None) -> None:
        """Warn if the clock has fallen behind `last` since the last call."""
        was_back, self._is_back = self._is_back, last is not None and now < last.at
        if last is not None and self._is_back and not was_back:
            self._warn(
                f"The clock was set back: it is {iso(now)}, and the last record exported is of "
                f"{iso(last.at)}. Records made until then will be missing here. Export them "
                f"afterwards: factbook audit export --since {iso(now - SETTLED)} "
                f"--until {iso(last.at)}"
            )


def render_audit_cursor(record: Record) -> str:
    """Text form of a record's position."""
    return f"{record.at}/{record.id}"


def split_audit_cursor(cursor: str) -> AuditPosition:
    """Position from a cursor that matches AUDIT_CURSOR."""
    at, _, id_ = cursor.partition("/")
    return AuditPosition(int(at), id_)


def render_record(record: Record) -> AuditRecord:
    """A record as every interface shows it."""
    return AuditRecord(**_list_members(record))


def _list_members(record: Record) -> dict[str, Any]:
    detail = msgspec.Raw(record.detail)
    return {**record._asdict(), "at": iso(record.at), "detail": detail}


def encode_records(records: Sequence[Record]) -> bytes:
    """A line for each record, with the cursor to continue after it."""
    listed = [
        AuditLine(**_list_members(record), cursor=render_audit_cursor(record)) for record in records
    ]
    return msgspec.json.Encoder().encode_lines(listed)


async def stream_audit_lines(database: Database, **wanted: Any) -> AsyncIterator[bytes]:
    """The records of `export_audit` as JSON lines, many at a time."""
    async for records in export_audit(database, **wanted):
        yield encode_records(records)


MONTHLY_AUDIT: Final = MonthlyTable("audit", "at")
_SWEPT_AT_ONCE: Final = 2_000


async def delete_old_records(database: Database, before: int, pace: Throttle) -> int:
    """Delete rows from before a time in portions, to keep locks short; returns a count.

    Rows less than a day older than the newest stay: the database enforces this for every caller.
    Monthly partitions are dropped as a whole and not counted.
    """
    [newest] = await database.one(_NEWEST) or (None,)
    before = min(before, (newest or 0) - DAY + 1)
    await replace_gone_partitions(
        database, MONTHLY_AUDIT, before, _is_partition_old, lambda _, __: True
    )
    gone, rest = 0, True
    while rest:
        place = await database.one(_PORTION, (before, _SWEPT_AT_ONCE))
        rest = place is not None
        gone += await database.write(partial(_delete_portion, before=place or (before, "")))
        await pace.rest()
    return gone


async def _is_partition_old(_: Partition) -> bool:
    return True


def _delete_portion(transaction: Transaction, *, before: tuple[int, str]) -> int:
    return transaction.run("DELETE FROM audit WHERE (at, id) < (?, ?)", before)


_NEWEST = "SELECT max(at) FROM audit"

_PORTION = "SELECT at, id FROM audit WHERE at < ? ORDER BY at, id LIMIT 1 OFFSET ?"
