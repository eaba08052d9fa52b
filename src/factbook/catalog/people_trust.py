"""Groups of a person, and the sets trusted to grant rights through memberships.

Anyone who can push one set, or commit to one imported repository, can claim that somebody is a
member of a group. Such a membership appears in the catalog but gives no rights. Rights come only
from `list_groups`, `lock_groups` and `read_groups`, which ignore it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Self

import msgspec

from factbook.auth import tokens, users
from factbook.catalog.piecewise import slices
from factbook.catalog.store import locks, stored_entities
from factbook.catalog.store.conditions import AllOf
from factbook.catalog.store.locks import WriteLocks
from factbook.settings import Settings
from factbook.storage import Database, Row, Transaction

# Prefix of the names of sets that importers write. Names of pushed sets contain no slash.
IMPORTED: Final = "import/"
# Suffix of the annotation with the origin of an imported entity, such as its repository.
ORIGIN_MARK: Final = "import-origin"
# Stands for entities outside any set.
OUTSIDE: Final = "/"

_DIRECTORIES: Final = frozenset({"ldif", "scim"})
_CODE_HOSTS: Final = frozenset({"gitea", "github", "gitlab"})
# The part of a code host's import with users and groups from files that `people_from` names.
PEOPLE_FILES: Final = "people"
# Parts with the code host's own accounts and teams, as opposed to files in its repositories.
_ACCOUNTS: Final = frozenset({"groups", "members", "teams"})
_NO_SOURCE: Final = 0

_AT_ONCE: Final = 500


# A part takes users and groups from parts below it.
_FILES, _PEOPLE_FILES, _HOST, _DIRECTORY = 1, 2, 3, 4


class PeopleTrust(NamedTuple):
    """The sets that a setting trusts, by name or by a prefix followed by `*`."""

    sets: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The sets named in the settings."""
        return cls(tuple(settings.people_sets or ()))

    def names(self, set_name: str | None) -> bool:
        """True if the setting names the set; None means entities outside any set."""
        return matches_set(self.sets, set_name)

    def counts(self, stated_in: str | None, group_in: str | None) -> bool:
        """True if a membership stated in one set gives the rights of a group in another set.

        A code host is trusted only for its own teams. Otherwise anyone who can create a team there
        could name it like a group from another source, even from a file in a repository there.
        """
        if self.names(stated_in):
            return True
        source = _set_source(stated_in)
        if source == _HOST:
            return _set_source(group_in) == _HOST and _importer_of_set(
                stated_in
            ) == _importer_of_set(group_in)
        return source == _DIRECTORY


def matches_set(patterns: Iterable[str], set_name: str | None) -> bool:
    """True if a pattern names the set. Only patterns that begin with `import/` match imports."""
    if set_name is None:
        return OUTSIDE in patterns
    is_imported = set_name.startswith(IMPORTED)
    return any(
        set_name.startswith(pattern[:-1]) if pattern.endswith("*") else set_name == pattern
        for pattern in patterns
        if pattern.startswith(IMPORTED) == is_imported
    )


def is_from_files(set_name: str | None) -> bool:
    """True for a set of entities from files in repositories."""
    return _set_source(set_name) in (_FILES, _PEOPLE_FILES)


def outranks_set(set_name: str | None, other: str | None, ref: str) -> bool:
    """True if a set takes this user or group from another set.

    For people, a directory or a code host overrides files in repositories.
    """
    if not ref.startswith(("user:", "group:")):
        return False
    source, below = _set_source(set_name), _set_source(other)
    return below in (_FILES, _PEOPLE_FILES) and source > below


def rank_set(set_name: str) -> int:
    """The rank of a set as a source of people; the highest rank wins."""
    return _set_source(set_name)


def _set_source(set_name: str | None) -> int:
    if set_name is None or not set_name.startswith(IMPORTED):
        return _NO_SOURCE
    kind, word = _importer_of_set(set_name).partition("-")[0], set_name.rpartition(".")[2]
    if kind in _DIRECTORIES:
        return _DIRECTORY
    if kind not in _CODE_HOSTS:
        return _NO_SOURCE
    if word in _ACCOUNTS:
        return _HOST
    return _PEOPLE_FILES if word == PEOPLE_FILES else _FILES


def _importer_of_set(set_name: str | None) -> str:
    """The id of the importer that writes a set; empty for other sets."""
    if set_name is None or not set_name.startswith(IMPORTED):
        return ""
    return set_name.removeprefix(IMPORTED).partition("/")[0]


class StatedMembership(NamedTuple):
    """A membership stated by one entity.

    `stated_in` is that entity's set and `group_in` the group's set, None outside any set. The group
    need not be in the catalog; then `group_id` is None.
    """

    person: str
    group: str
    stated_by: str
    stated_in: str | None
    group_id: int | None
    group_in: str | None

    def counts(self, trust: PeopleTrust) -> bool:
        """True if the membership gives the rights of the group."""
        return trust.counts(self.stated_in, self.group_in)


def list_groups(transaction: Transaction, ref: str, trust: PeopleTrust) -> frozenset[str]:
    """The groups whose rights a person has as a direct member.

    Empty, here and below, for an account that isn't proven to belong to the catalog user of the
    same name.
    """
    if users.is_unproven(transaction, ref):
        return frozenset()
    return _trusted_groups(transaction.all(_STATED_MEMBERSHIPS, ([ref], [ref])), trust)


def lock_groups(
    transaction: Transaction, held: WriteLocks, ref: str, trust: PeopleTrust
) -> frozenset[str]:
    """Like `list_groups`; also locks the entities that state them until the end of the write."""
    if users.is_unproven(transaction, ref):
        return frozenset()
    while True:
        rows = [
            StatedMembership(*row) for row in transaction.all(_STATED_MEMBERSHIPS, ([ref], [ref]))
        ]
        counted = [row for row in rows if row.counts(trust)]
        owners = {locks.owner(row.stated_in, row.stated_by) for row in counted}
        owners |= {locks.owner(row.group_in, row.group) for row in counted if row.group_id}
        if not held.share(transaction, owners):
            return frozenset(row.group for row in counted)


async def read_groups(database: Database, ref: str, trust: PeopleTrust) -> frozenset[str]:
    """Like `list_groups`, outside a transaction."""
    if await users.read_unproven(database, ref):
        return frozenset()
    return _trusted_groups(await database.all(_STATED_MEMBERSHIPS, ([ref], [ref])), trust)


async def read_stated_groups(database: Database, ref: str) -> frozenset[str]:
    """Every stated group of a person, trusted or not; not for granting rights."""
    return frozenset(row[1] for row in await database.all(_STATED_MEMBERSHIPS, ([ref], [ref])))


async def find_without_rights(
    database: Database, people: Iterable[str], trust: PeopleTrust
) -> list[StatedMembership]:
    """The memberships of these people that give no rights, once for each entity that states one."""
    found: list[StatedMembership] = []
    for refs in slices(sorted(set(people)), _AT_ONCE):
        rows = [
            StatedMembership(*row) for row in await database.all(_STATED_MEMBERSHIPS, (refs, refs))
        ]
        counted = {(row.person, row.group) for row in rows if row.counts(trust)}
        found += sorted(row for row in rows if (row.person, row.group) not in counted)
    return found


def list_owners(transaction: Transaction, ref: str) -> frozenset[str]:
    """The owners of an entity."""
    return frozenset(owner for (owner,) in transaction.all(_OWNERS_OF_ENTITY, (ref,)))


def _trusted_groups(rows: Sequence[Row], trust: PeopleTrust) -> frozenset[str]:
    stated = [StatedMembership(*row) for row in rows]
    return frozenset(row.group for row in stated if row.counts(trust))


class LostRight(NamedTuple):
    """Groups whose rights a person lacks because only this untrusted set states the memberships.

    `setting` is the line that restores the rights; for files in repositories, `importer_setting` is
    an additional line in the importer's table.
    """

    person: str
    groups: tuple[str, ...]
    stated_in: str | None
    setting: str
    importer_setting: str = ""

    @property
    def place(self) -> str:
        """The set, for people."""
        return _name_set(self.stated_in)

    @property
    def remedy(self) -> str:
        """The settings, for people."""
        if not self.importer_setting:
            return self.setting
        importer = (self.stated_in or "").split("/")[1]
        return f"{self.setting} and, among the options of {importer}, {self.importer_setting}"


class SetWithoutRights(NamedTuple):
    """A set that is not trusted for people, and how many memberships it states."""

    name: str | None
    memberships: int
    setting: str

    @property
    def place(self) -> str:
        """The set, for people."""
        return _name_set(self.name)


async def find_lost_rights(database: Database, trust: PeopleTrust, domain: str) -> list[LostRight]:
    """The rights that people with accounts or tokens lack, by set and person.

    `domain` is the domain of the service's own annotations.
    """
    people = await users.list_enabled_refs(database)
    people.update(await tokens.list_token_owners(database))
    stated = await find_without_rights(database, people, trust)
    from_files = [row.stated_by for row in stated if is_from_files(row.stated_in)]
    origins = await _find_origins(database, from_files, domain) if from_files else {}
    grouped: dict[tuple[str, str | None, str], list[StatedMembership]] = {}
    for row in stated:
        key = (row.person, row.stated_in, origins.get(row.stated_by, ""))
        grouped.setdefault(key, []).append(row)
    return [
        LostRight(
            person,
            tuple(sorted({row.group for row in rows})),
            name,
            _people_setting(trust, [_trusted_name(name)]),
            f'people_from = ["{origin}"]' if origin else "",
        )
        for (person, name, origin), rows in sorted(grouped.items(), key=_order_group)
    ]


async def find_sets_without_rights(
    database: Database, trust: PeopleTrust
) -> list[SetWithoutRights]:
    """The sets that state memberships and are not trusted, by name."""
    rows = await database.all(_STATING_SETS)
    return [
        SetWithoutRights(name, count, _people_setting(trust, [_trusted_name(name)]))
        for name, count in sorted(rows, key=lambda row: row[0] or "")
        if not trust.counts(name, name)
    ]


def _name_set(set_name: str | None) -> str:
    return "entities outside any set" if set_name is None else f"the set {set_name}"


def _trusted_name(set_name: str | None) -> str:
    """The set's name in the setting: people from files are in a separate part of the import."""
    if set_name is None:
        return OUTSIDE
    if is_from_files(set_name):
        return f"{set_name.rpartition('.')[0]}.{PEOPLE_FILES}"
    return set_name


def _people_setting(trust: PeopleTrust, more: Iterable[str]) -> str:
    names = dict.fromkeys([*trust.sets, *more])
    return f"people_sets = {msgspec.json.encode([*names]).decode().replace(',', ', ')}"


async def _find_origins(database: Database, refs: Iterable[str], domain: str) -> Mapping[str, str]:
    """The repositories, as `people_from` names them, that entities were imported from."""
    mark, found = f"{domain}/{ORIGIN_MARK}", dict[str, str]()
    stored = await stored_entities.read_entities_by_refs(database, sorted(set(refs)), AllOf([]))
    for ref, one in stored.items():
        metadata = msgspec.json.decode(one.render())["metadata"]
        origin = str(metadata.get("annotations", {}).get(mark, ""))
        found[ref] = origin.partition("/")[2]
    return found


def _order_group(group: tuple[tuple[str, str | None, str], object]) -> tuple[str, str, str]:
    (person, name, origin), _ = group
    return name or "", person, origin


_STATED_MEMBERSHIPS: Final = """
SELECT e.ref, r.target_ref, e.ref, s.name, g.id, t.name
FROM entities e JOIN relations r ON r.source_id = e.id
LEFT JOIN sets s ON s.id = e.set_id
LEFT JOIN entities g ON g.ref = r.target_ref LEFT JOIN sets t ON t.id = g.set_id
WHERE e.ref IN LIST(?) AND r.type = 'memberOf'
UNION
SELECT r.target_ref, g.ref, g.ref, s.name, g.id, s.name
FROM relations r JOIN entities g ON g.id = r.source_id
LEFT JOIN sets s ON s.id = g.set_id
WHERE r.target_ref IN LIST(?) AND r.type = 'hasMember'
"""

_OWNERS_OF_ENTITY: Final = """
SELECT r.target_ref FROM entities e JOIN relations r ON r.source_id = e.id
WHERE e.ref = ? AND r.type = 'ownedBy'
"""

_STATING_SETS: Final = """
SELECT s.name, count(*) FROM relations r JOIN entities e ON e.id = r.source_id
LEFT JOIN sets s ON s.id = e.set_id
WHERE r.type IN ('memberOf', 'hasMember') GROUP BY s.name
"""
