"""Snapshot of a system: parts, each complete or not, with their entities and problems.

An importer reads such a snapshot and sees no database. Its part `key` is written into the set
`import/<importer>/<key>`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from factbook.catalog import ref
from factbook.catalog.people_trust import IMPORTED

PREFIX: Final = IMPORTED
# The key under which the memory of an importer has the namespaces of what its parts had at first.
NAMESPACES: Final = "namespaces of parts"
# The mark of an item that nobody wrote. One of a file takes its reference, whoever imports it.
GENERATED: Final[Mapping[str, str]] = MappingProxyType({ref.GENERATED: "true"})
# The key of namespaces and names by external id, for a reading that remembers no other one.
STATED: Final = "names in the catalog"


class ReadingProblem(NamedTuple):
    """Sentence about something that was not imported, with its place.

    `origin` is what was read, e.g. a repository; `file` and `line` are of a file in it, line 0 is
    no certain one.
    """

    origin: str
    message: str
    file: str = ""
    line: int = 0

    @property
    def place(self) -> str:
        """The place, for people: `github.com/acme/shop catalog-info.yaml:14`."""
        line = f":{self.line}" if self.line else ""
        return f"{self.origin} {self.file}{line}" if self.file else self.origin

    def __str__(self) -> str:
        return f"{self.place}: {self.message}" if self.origin else self.message


@dataclass(frozen=True, slots=True)
class ImportedItem:
    """Entity as an importer makes it.

    `origin` is what it was read from and is failing or gone as a whole, such as a repository.
    `external_id` stays the same when the thing gets another name. An item that is `tentative` was
    made without all that it depends on: it is added, but never changes what is there. `lines` gives
    the line of a field in `file` by its path: `metadata.name`. `marks` are annotations of the
    product's own domain, by their names without it. `raw` is the thing as the system describes it,
    for the mapping of the settings; None for an entity that somebody wrote in a file. `rights` are
    those of the part without which it would not have been found. An item that is `known_only`
    changes what the same origin has in the catalog, and adds nothing.
    """

    entity: Mapping[str, Any]
    origin: str
    external_id: str = ""
    file: str = ""
    line: int = 0
    lines: Mapping[str, int] = field(default_factory=dict, repr=False)
    tentative: bool = False
    marks: Mapping[str, str] = field(default_factory=dict, repr=False)
    raw: Any = field(default=None, repr=False)
    rights: frozenset[str] = frozenset()
    known_only: bool = False

    def problem(self, message: str, path: str = "") -> ReadingProblem:
        """A problem of this item, or of the field with this path."""
        field = path.partition("[")[0]
        line = self.lines.get(field) or self.lines.get(field.rpartition(".")[0]) or self.line
        text = f"{path}: {message}" if path else message
        return ReadingProblem(self.origin, text, self.file, line)


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """One part of a snapshot.

    `complete`: everything that exists was read, so that what is not in it has gone. `unread` are
    origins that exist but could not be read whole: what came from them before stays. `rights` are
    what the credential could see; a reading with fewer of them than the last complete one is not
    believed to be complete. `former` are the origins that an origin had before it was renamed.
    `only` are the origins that were read, None for all of them: nothing else changes. `lost` are
    further ones that were not found: whether they are gone, a reading of everything tells. With
    `failed` something in it could not be read for a passing reason: the part is told as partial.
    Each of the `stand_ins` counts if its origin holds entities, of which none is valid.
    """

    key: str
    complete: bool
    items: tuple[ImportedItem, ...] = ()
    problems: tuple[ReadingProblem, ...] = ()
    unread: frozenset[str] = frozenset()
    rights: frozenset[str] = frozenset()
    former: Mapping[str, frozenset[str]] = field(default_factory=dict, repr=False)
    only: frozenset[str] | None = None
    lost: frozenset[str] = frozenset()
    failed: bool = False
    stand_ins: tuple[ImportedItem, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Result of one reading; `left_out` counts what settings leave out, by a word for it."""

    parts: tuple[SnapshotPart, ...]
    left_out: Mapping[str, int] = field(default_factory=dict)


def name_set(importer: str, part: str) -> str:
    """The set of a part."""
    return f"{PREFIX}{importer}/{part}"
