"""Imports on the database without a server: reading, planning, writing, and held removals."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from factbook.audit import trail
from factbook.audit.trail import COMMAND_LINE, About, AuditEntry, Caller
from factbook.backend import Backend
from factbook.catalog.push_rules import PushRules
from factbook.catalog.store.stored_sets import PushResult
from factbook.clock import Clock, now
from factbook.datasources.memory import DatabaseMemory
from factbook.errors import ConfigurationError, NotFoundError
from factbook.importers import held, part_store
from factbook.importers.github import organization
from factbook.importers.github.options import GithubImportOptions
from factbook.importers.part_store import ImportPartRecord
from factbook.importers.snapshot import PREFIX, Snapshot, set_name
from factbook.importers.writer import ImportTarget, PartResult, actor, write_snapshot
from factbook.integrations import vendor
from factbook.integrations.github.graphql import GithubApi
from factbook.integrations.github.options import GITHUB as GITHUB_COM
from factbook.integrations.github.options import GithubOptions
from factbook.outbound import ClientHealth
from factbook.settings import option_tables
from factbook.storage import Database

GITHUB: Final = "github"
_BUDGET: Final = "graphql"

Show = Callable[[str], None]


class ImportReport(NamedTuple):
    """Result of an import: the parts, what settings leave out, and the calls that it took.

    `left` is what is left of the vendor's limit, None if that is not known.
    """

    importer: str
    snapshot: Snapshot
    parts: Sequence[PartResult]
    calls: int
    left: int | None


class GithubInstance(NamedTuple):
    """Instance of GitHub in the settings; `token` and `host` stand in for one that is not there."""

    name: str
    token: str | None = None
    host: str = GITHUB_COM


async def import_github(
    backend: Backend,
    instance: GithubInstance,
    chosen: Mapping[str, Any],
    *,
    plan: bool,
    show: Show = lambda text: None,
    clock: Clock = now,
) -> ImportReport:
    """Read organizations of GitHub and write what they hold, or plan that.

    `chosen` are options of the import; the organizations are those of the instance if none are
    chosen. Raises ConfigurationError without a credential or an organization.
    """
    table = _table(backend, instance)
    options = option_tables.read(GITHUB, instance.name, table, GithubOptions)
    given: dict[str, Any] = {"organizations": tuple(options.organizations), **chosen}
    if not given["organizations"]:
        raise ConfigurationError("Name an organization: --org acme.")
    integration = vendor(GITHUB).configured(instance.name, table, clock=clock)
    importer, at = integration.source.id, clock()
    async with backend.opened() as database:
        client = backend.client(integration)
        try:
            memory = DatabaseMemory(database, f"{PREFIX}{importer}", at)
            api = GithubApi(client, options, memory, at)
            wanted = msgspec.convert(given, GithubImportOptions)
            snapshot = await organization.read(api, wanted, show)
            show("Comparing" if plan else "Writing")
            target = _target(backend, database, _written, at)
            parts = await write_snapshot(target, importer, snapshot, at, dry_run=plan)
            if not plan:
                await database.write(memory.flush)
        finally:
            await backend.disconnect()
    return ImportReport(importer, snapshot, parts, client.health.calls, _left(client.health))


async def import_parts(backend: Backend) -> list[ImportPartRecord]:
    """Every part that was imported, with its last reading."""
    async with backend.opened() as database:
        return await part_store.part_records(database)


async def apply_held(
    backend: Backend, name: str, seen: int, clock: Clock = now
) -> ImportPartRecord:
    """Remove what is held of a part, named by its set, if its last reading was at `seen`.

    Raises the errors of `held.apply`.
    """
    importer, part = _part_of(name)
    async with backend.opened() as database:
        entry = AuditEntry("import.apply", set_name(importer, part))
        target = _target(backend, database, entry, at := clock())
        return await held.apply(target, importer, part, actor(importer, at), seen)


async def discard_held(
    backend: Backend, name: str, seen: int, clock: Clock = now
) -> ImportPartRecord:
    """Keep what is held of a part, named by its set, if its last reading was at `seen`.

    Raises the errors of `held.discard`.
    """
    importer, part = _part_of(name)
    async with backend.opened() as database:
        entry = AuditEntry("import.discard", set_name(importer, part))
        target = _target(backend, database, entry, clock())
        return await held.discard(target, importer, part, seen)


def _part_of(name: str) -> tuple[str, str]:
    importer, slash, part = name.removeprefix(PREFIX).partition("/")
    if not slash:
        raise NotFoundError(f'"{name}" is not IMPORTER/PART, such as github/acme.repositories.')
    return importer, part


def _table(backend: Backend, instance: GithubInstance) -> dict[str, Any]:
    """The table of an instance, or one with the token if there is none."""
    table = backend.settings.integrations.get(GITHUB, {}).get(instance.name)
    if table is not None:
        return dict(table)
    if not instance.token:
        raise ConfigurationError(
            "GITHUB_TOKEN has to hold a token, or the settings a table "
            f"[integrations.{GITHUB}.{instance.name}] with one or with an app."
        )
    return {"token": instance.token, "host": instance.host}


def _target(
    backend: Backend, database: Database, about: AuditEntry | About, at: int
) -> ImportTarget:
    settings = backend.settings
    write = trail.writing(database, Caller(COMMAND_LINE, at), about)
    return ImportTarget(database, PushRules.of(settings), settings.revisions_kept, write)


def _written(outcome: object) -> AuditEntry | None:
    """The record of a part; None for a reading that changed nothing."""
    if not (isinstance(outcome, PushResult) and outcome.plan.set):
        return None
    return AuditEntry("import.write", outcome.plan.set.name, outcome.plan.changes)


def _left(health: ClientHealth) -> int | None:
    allowance = health.allowances.get(_BUDGET)
    return allowance.remaining if allowance else None
