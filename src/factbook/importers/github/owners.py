"""Owners of repositories by the teams: read with everything, and kept for readings of a few."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, Self

import msgspec

from factbook.importers.code_host.entities import KnownOwners, owners_of_everything
from factbook.importers.code_host.repository import (
    HostedRepository,
    Ownership,
    Place,
    RootContent,
)
from factbook.importers.github.teams import People, owner_of
from factbook.integrations.integration import store_entry, stored_entry
from factbook.outbound import Memory


class _KeptOwners(msgspec.Struct, array_like=True):
    """The slugs of the teams, and that of the owner of each repository, empty for none.

    `logins` are those of the members, None if they are not known.
    """

    slugs: list[str]
    owners: dict[int, str]
    logins: list[str] | None = None


class TeamOwners(NamedTuple):
    """Owners by the teams: `slugs` are those of the teams, None if they are not known.

    `owners` has the repositories that were read with them. Nothing is `expected` of the teams where
    people are not imported. `logins` are those of the members, None if they are not known.
    """

    slugs: Collection[str] | None
    owners: Mapping[int, str]
    expected: bool
    logins: Collection[str] | None = None

    @classmethod
    def of(cls, people: People | None, numbers: Iterable[int]) -> Self:
        """The owners of these repositories, by what was read of the teams."""
        if people is None or people.missing:
            return cls(None, {}, people is not None)
        owners = {number: owner_of(number, people.teams) or "" for number in numbers}
        return cls(list(people.teams), owners, True, people.logins)

    @classmethod
    async def kept(cls, memory: Memory, place: Place, *, expected: bool) -> Self:
        """Those of the last reading of everything."""
        found = await stored_entry(memory, _key(place), _KeptOwners) if expected else None
        if found is None:
            return cls(None, {}, expected)
        return cls(found.slugs, found.owners, True, found.logins)

    async def keep(self, memory: Memory, place: Place) -> None:
        """Keep them, if they are known."""
        if self.slugs is not None:
            logins = None if self.logins is None else sorted(self.logins)
            kept = _KeptOwners(list(self.slugs), {**self.owners}, logins)
            await store_entry(memory, _key(place), kept)

    def of_repository(self, place: Place, one: HostedRepository, root: RootContent) -> Ownership:
        """The owner by CODEOWNERS, then the only team that administers or maintains it.

        While the teams are not known, an owner may be missing that was known before.
        """
        if root.codeowners is not None:
            known = KnownOwners(self.slugs, self.logins)
            ref = known.first(place, owners_of_everything(root.codeowners))
            if ref is not None:
                return Ownership(ref)
        slug = self.owners.get(one.number)
        if self.slugs is None or slug is None:
            return Ownership(None, certain=not self.expected)
        return Ownership(place.ref("group", slug) if slug else None)


def _key(place: Place) -> str:
    return f"owners:{place.origin}"
