"""Memberships that give no right as no trusted set states them, and how to change that."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

import msgspec

from factbook.auth import tokens, users
from factbook.catalog import people_trust
from factbook.catalog.people_trust import PEOPLE_FILES, PeopleTrust
from factbook.catalog.store import by_ref, membership
from factbook.catalog.store.conditions import AllOf
from factbook.catalog.store.membership import StatedMembership
from factbook.storage import Database


class LostRight(NamedTuple):
    """Groups whose rights a person lacks, as only this set states the memberships.

    `setting` is the line that restores them; `importer_setting` one more in the table of the
    importer, for what a file in a repository says.
    """

    person: str
    groups: tuple[str, ...]
    stated_in: str | None
    setting: str
    importer_setting: str = ""

    @property
    def place(self) -> str:
        """The set, for people."""
        return _told(self.stated_in)

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
        return _told(self.name)


async def lost_rights(database: Database, trust: PeopleTrust, domain: str) -> list[LostRight]:
    """The rights that people with accounts or tokens lack, by set and person.

    `domain` is that of the service's own annotations.
    """
    people = await users.list_enabled_refs(database)
    people.update(await tokens.list_token_owners(database))
    stated = await membership.without_rights(database, people, trust)
    from_files = [row.stated_by for row in stated if people_trust.is_from_files(row.stated_in)]
    origins = await _origins(database, from_files, domain) if from_files else {}
    grouped: dict[tuple[str, str | None, str], list[StatedMembership]] = {}
    for row in stated:
        key = (row.person, row.stated_in, origins.get(row.stated_by, ""))
        grouped.setdefault(key, []).append(row)
    return [
        LostRight(
            person,
            tuple(sorted({row.group for row in rows})),
            name,
            _setting(trust, [_trusted_name(name)]),
            f'people_from = ["{origin}"]' if origin else "",
        )
        for (person, name, origin), rows in sorted(grouped.items(), key=_in_order)
    ]


async def sets_without_rights(database: Database, trust: PeopleTrust) -> list[SetWithoutRights]:
    """The sets that state memberships and are not trusted, by name."""
    rows = await database.all(_STATING)
    return [
        SetWithoutRights(name, count, _setting(trust, [_trusted_name(name)]))
        for name, count in sorted(rows, key=lambda row: row[0] or "")
        if not trust.counts(name, name)
    ]


def _told(set_name: str | None) -> str:
    """A set, or what is outside any, for people."""
    return "entities outside any set" if set_name is None else f"the set {set_name}"


def _trusted_name(set_name: str | None) -> str:
    """The name that the setting would have: people of files have a part of their own."""
    if set_name is None:
        return people_trust.OUTSIDE
    if people_trust.is_from_files(set_name):
        return f"{set_name.rpartition('.')[0]}.{PEOPLE_FILES}"
    return set_name


def _setting(trust: PeopleTrust, more: Iterable[str]) -> str:
    names = dict.fromkeys([*trust.sets, *more])
    return f"people_sets = {msgspec.json.encode([*names]).decode().replace(',', ', ')}"


async def _origins(database: Database, refs: Iterable[str], domain: str) -> Mapping[str, str]:
    """The repositories, as `people_from` names them, that entities were imported from."""
    mark, found = f"{domain}/{people_trust.ORIGIN_MARK}", dict[str, str]()
    stored = await by_ref.entities_by_refs(database, sorted(set(refs)), AllOf([]))
    for ref, one in stored.items():
        metadata = msgspec.json.decode(one.render())["metadata"]
        origin = str(metadata.get("annotations", {}).get(mark, ""))
        found[ref] = origin.partition("/")[2]
    return found


def _in_order(group: tuple[tuple[str, str | None, str], object]) -> tuple[str, str, str]:
    (person, name, origin), _ = group
    return name or "", person, origin


_STATING: Final = """
SELECT s.name, count(*) FROM relations r JOIN entities e ON e.id = r.source_id
LEFT JOIN sets s ON s.id = e.set_id
WHERE r.type IN ('memberOf', 'hasMember') GROUP BY s.name
"""
