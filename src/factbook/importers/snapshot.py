"""Snapshot of a system: parts, each complete or not, with their entities and problems.

An importer reads such a snapshot and sees no database. Its part `key` is written into the set
`import/<importer>/<key>`. Importers share how entities get their names, and which accounts are
people: somebody who can sign in. Service accounts, accounts that are disabled, and those of people
who left are in no part, in no group, and own nothing.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import msgspec

from factbook import invisible
from factbook.catalog import ref
from factbook.catalog.people_trust import IMPORTED
from factbook.catalog.validation import DOT_SEGMENTS, normal_name
from factbook.integrations.integration import get_stored_entry, store_entry
from factbook.outbound.cache import Memory

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
        """The place as shown to users: `github.com/acme/shop catalog-info.yaml:14`."""
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
    taken to be complete. `former` are the origins that an origin had before it was renamed.
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


_LONGEST_NAME: Final = 253
_RUNS: Final = re.compile(r"-{2,}")


async def remember_names(
    memory: Memory, key: str, given: Mapping[str, str], *, complete: bool
) -> dict[str, str]:
    """The names by id that a reading gives, which is remembered for the next one.

    An incomplete reading includes earlier names, because uniqueness depends on all of them.
    """
    before: dict[str, str] = {}
    if not complete and (kept := await memory.get(key)):
        before = msgspec.json.decode(kept, type=dict[str, str])
    names = {**before, **given}
    await memory.put(key, msgspec.json.encode(names))
    return names


async def assign_lasting_names(
    memory: Memory,
    key: str,
    wanted: Mapping[str, str],
    suffixes: Mapping[str, object],
    *,
    complete: bool,
    taken: Collection[str] = (),
) -> dict[str, str]:
    """A name for each id that nothing else has: the one it had last time, or the one it wants.

    Where something else has that name, the id's suffix follows it. `taken` are names of others. The
    names of ids that an incomplete reading didn't find are kept.
    """
    kept = await get_kept_names(memory, key)
    apart = {id_: f"{name[:180]}-{suffixes[id_]}" for id_, name in wanted.items()}
    names = {} if complete else {id_: name for id_, name in kept.items() if id_ not in wanted}
    for id_, name in wanted.items():
        before = kept.get(id_, "").casefold()
        if before == name.casefold():
            names[id_] = name
        elif f"{before}-".startswith(f"{apart[id_]}-".casefold()):
            names[id_] = kept[id_]
    used = {name.casefold() for name in (*taken, *names.values())}
    for id_, name in wanted.items():
        if id_ in names:
            continue
        found, times = name, 1
        while found.casefold() in used:
            found = apart[id_] if times == 1 else f"{apart[id_]}-{times}"
            times += 1
        names[id_] = found
        used.add(found.casefold())
    if names != kept:
        await keep_names(memory, key, names)
    return names


async def keep_names(memory: Memory, key: str, names: Mapping[str, str]) -> None:
    """Keep the names by id for the next reading."""
    await store_entry(memory, key, _NamesById(dict(names)))


class _NamesById(msgspec.Struct, array_like=True):
    """Names by id."""

    names: dict[str, str]


async def get_kept_names(memory: Memory, key: str) -> dict[str, str]:
    """The names by id that the last reading gave."""
    kept = await get_stored_entry(memory, key, _NamesById)
    return kept.names if kept else {}


def make_unique_names(given: Mapping[str, str]) -> dict[str, str]:
    """A name for each id, which is the name that it is given wherever that can be one.

    Names that differ only in case would be one reference: each of them gets its id behind it.
    """
    names = {id_: make_entity_name(name) or make_entity_name(id_) for id_, name in given.items()}
    # A name with an id behind it may be that which something else was given.
    while (count := Counter(name.casefold() for name in names.values())).total() > len(count):
        names = {
            id_: name if count[name.casefold()] == 1 else make_entity_name(f"{name[:180]}-{id_}")
            for id_, name in names.items()
        }
    return names


def make_entity_name(text: str) -> str:
    """The text as a name: with a hyphen for what no name may hold, cut to 253 characters.

    Empty if nothing of the text can be a name.
    """
    allowed = (c if c.isprintable() and c not in "/:" else "-" for c in invisible.without(text))
    changed = "".join(allowed)
    if changed != text:
        changed = _RUNS.sub("-", changed).strip("- ")
    name = normal_name(changed[:_LONGEST_NAME])[:_LONGEST_NAME].strip()
    return "" if name in DOT_SEGMENTS else name


class HostAccount(Protocol):
    """Account as a system describes it."""

    @property
    def is_service(self) -> bool:
        """True for the account of a program."""

    @property
    def is_disabled(self) -> bool:
        """True for an account that nobody can sign in with."""


Account = TypeVar("Account", bound=HostAccount)


def is_person_account(account: HostAccount) -> bool:
    """True for the account of a person who can sign in."""
    return not (account.is_service or account.is_disabled)


def select_people(accounts: Iterable[Account], left_out: Counter[str]) -> list[Account]:
    """The accounts of people; the others are counted in `left_out`."""
    found = []
    for one in accounts:
        if is_person_account(one):
            found.append(one)
        else:
            left_out["service accounts" if one.is_service else "disabled accounts"] += 1
    return found
