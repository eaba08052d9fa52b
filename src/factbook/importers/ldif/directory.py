"""Reading of an LDIF file: the people and groups of a directory."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from factbook.importers.ldif import people, records
from factbook.importers.ldif.options import LdifImportOptions
from factbook.importers.ldif.people import Entity, LdifDirectory
from factbook.importers.ldif.records import LdifContent, LdifProblem, LdifRecord
from factbook.importers.names import lasting_names
from factbook.importers.snapshot import ImportedItem, ReadingProblem, Snapshot, SnapshotPart
from factbook.outbound import Memory

PEOPLE: Final = "people"
GROUPS: Final = "groups"
_NO_FILE: Final = "cannot be read: it is not there, or not for the user who imports"

Show = Callable[[str], None]


async def read(options: LdifImportOptions, memory: Memory, show: Show, now: int) -> Snapshot:
    """A snapshot of the file: parts for its people and its groups, without accounts that ended."""
    show("Reading the file")
    content = await asyncio.to_thread(_content, options)
    return await snapshot(content, options, memory, now)


def _content(options: LdifImportOptions) -> LdifContent:
    path = Path(options.path)
    try:
        with path.open("rb") as file:
            # One more is enough to tell that it is too large.
            data = file.read(records.LARGEST + 1)
    except (OSError, ValueError):
        return LdifContent(complete=False, problems=[LdifProblem(0, _NO_FILE)])
    return records.parsed(data, people.WANTED)


async def snapshot(
    content: LdifContent, options: LdifImportOptions, memory: Memory, now: int
) -> Snapshot:
    """The snapshot of what a file holds.

    Where a group may be missing, nobody's groups are certain.
    """
    directory = await asyncio.to_thread(LdifDirectory.of, content.records, options.namespace, now)
    every = {**directory.people, **directory.groups}
    suffixes = {key: _suffix(one) for key, one in every.items()}
    for word, names in (
        (PEOPLE, directory.names_of_people),
        (GROUPS, directory.names_of_groups),
    ):
        wanted = {key: name for key, name in names.items() if name}
        key, complete = f"names of {word}", content.complete and not content.broken
        directory.names |= await lasting_names(memory, key, wanted, suffixes, complete=complete)
    doubts = [LdifProblem(one.line, text, one.key) for one, text in directory.doubts]
    content.problems.extend(doubts)
    return await asyncio.to_thread(of_directory, content, options, directory)


def of_directory(
    content: LdifContent, options: LdifImportOptions, directory: LdifDirectory
) -> Snapshot:
    """The snapshot of a directory that was read from a file."""
    certain = content.complete and all(map(people.is_person, content.broken))
    certain = certain and not content.cut_off
    both = options.people and options.groups
    making = _FileParts(content, Path(options.path).name, certain=certain, both=both)
    parts = []
    if options.people:
        found = directory.people.values()
        parts.append(making.part(PEOPLE, found, directory.user, people.is_group))
    if options.groups:
        found = directory.groups.values()
        parts.append(making.part(GROUPS, found, directory.group, people.is_person))
    return Snapshot(tuple(parts), directory.left_out if options.people else {})


class _FileParts:
    """Maker of the parts of one file."""

    def __init__(self, content: LdifContent, file: str, *, certain: bool, both: bool) -> None:
        self._content = content
        self._file = file
        self._certain = certain
        self._both = both
        self._unread = frozenset(map(_origin, (record.key for record in content.broken)))

    def part(
        self,
        key: str,
        found: Iterable[LdifRecord],
        made: Callable[[LdifRecord], Entity],
        is_other: Callable[[LdifRecord], bool],
    ) -> SnapshotPart:
        """The part of these records, with the problems that don't show in the other one."""
        items = tuple(self._item(record, made(record)) for record in found)
        known = (*self._content.records, *self._content.broken)
        others = {record.key for record in known if self._both and is_other(record)}
        others -= self._content.cut_off
        told = (one for one in self._content.problems if one.key not in others)
        problems = tuple(map(self._problem, told))
        return SnapshotPart(key, self._content.complete, items, problems, unread=self._unread)

    def _item(self, record: LdifRecord, entity: Entity) -> ImportedItem:
        id_ = people.unique_id(record)
        return ImportedItem(
            entity,
            _origin(record.key),
            f"ldap/{id_}" if id_ else "",
            self._file,
            record.line,
            tentative=not self._certain,
            raw={"dn": record.dn} | {name: record.texts(name) for name in record.values},
        )

    def _problem(self, one: LdifProblem) -> ReadingProblem:
        return ReadingProblem(_origin(one.key), one.message, self._file, one.line)


def _suffix(record: LdifRecord) -> str:
    """The end of a name that tells an entry from others: of its id, or of its own name."""
    return (people.unique_id(record) or hashlib.sha256(record.key.encode()).hexdigest())[-8:]


def _origin(key: str) -> str:
    return f"ldap {key}" if key else "ldap"
