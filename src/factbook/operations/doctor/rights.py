"""People without the rights of their groups, because no trusted set states the memberships."""

from collections.abc import AsyncIterator
from typing import Final

from factbook.catalog.people_trust import PeopleTrust
from factbook.catalog.store import lost_rights
from factbook.operations.doctor.findings import Finding, ok, warning
from factbook.settings import Settings
from factbook.storage import Database, migrations

TOPIC: Final = "rights of groups"
# The newest migration of the first schema with all that is read here.
_OLDEST_SCHEMA: Final = 39


async def rights(database: Database, settings: Settings) -> AsyncIterator[Finding]:
    """Sets that state memberships without rights, and each person with an account who lacks one.

    They are warnings until `people_sets` is set, to an empty list if none is to be trusted.
    """
    trust = PeopleTrust.of(settings)
    sets = await lost_rights.sets_without_rights(database, trust)
    lost = await lost_rights.lost_rights(database, trust, settings.annotation_domain)
    for one in sets:
        what = f"Memberships in {one.place} that give no rights: {one.memberships:,}."
        yield _finding(settings, what, one.setting)
    for right in lost:
        groups = ", ".join(right.groups)
        what = f"{right.person} doesn't have the rights of {groups}: only {right.place} says so."
        yield _finding(settings, what, right.remedy)
    if not sets:
        yield ok(TOPIC, "Trusted sets state every membership.")


async def rights_after_upgrade(database: Database, settings: Settings) -> AsyncIterator[Finding]:
    """The same on a schema from before the upgrade, unless that is too old to tell."""
    if await migrations.version(database) < _OLDEST_SCHEMA:
        what = "This schema is too old to list who will lack rights of groups."
        yield warning(TOPIC, what, "Run `factbook doctor` again after the upgrade.")
        return
    async for finding in rights(database, settings):
        yield finding


def _finding(settings: Settings, what: str, setting: str) -> Finding:
    if settings.people_sets is not None:
        return ok(TOPIC, f"{what} To change that: {setting}")
    advice = f"To trust it: {setting}. To trust none: people_sets = []."
    return warning(TOPIC, what, advice)
