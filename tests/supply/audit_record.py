"""The last audit that found nothing: its date, and the lock files that it covered."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

_NOTE = "Written by `make audit`. null: no service of advisories could be asked so far."


class AuditRecord(msgspec.Struct):
    """Date as ISO 8601 (None: there was no audit), service, and SHA-256 by name of lock file."""

    audited_on: str | None = None
    service: str | None = None
    locks: dict[str, str] = {}
    note: str = _NOTE


def load(path: Path) -> AuditRecord:
    """The record of a file; raises msgspec.ValidationError when it is none."""
    return msgspec.json.decode(path.read_bytes(), type=AuditRecord)


def write(path: Path, today: str, service: str, locks: Sequence[Path]) -> None:
    """Record that the service knows of nothing against these locks today."""
    digests = {lock.name: _digest(lock) for lock in locks}
    record = AuditRecord(audited_on=today, service=service, locks=digests)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")


def summary(record: AuditRecord, locks: Sequence[Path]) -> str:
    """A sentence about the last audit, with the locks that have changed since."""
    if record.audited_on is None:
        return "no audit has been possible so far"
    changed = [lock.name for lock in locks if record.locks.get(lock.name) != _digest(lock)]
    since = f", before changes to {', '.join(changed)}" if changed else ""
    return f"the last audit was on {record.audited_on} ({record.service}){since}"


def _digest(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes()).hexdigest()
