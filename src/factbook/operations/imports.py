"""Imports on the database without a server: reading, planning, writing, and held removals."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from factbook.audit.trail import COMMAND_LINE, About, AuditEntry, Caller, audit_writes
from factbook.backend import Backend
from factbook.catalog.sets import PushRules
from factbook.clock import Clock, now
from factbook.errors import ConfigurationError, NotFoundError
from factbook.importers import records, registry, runner, writer
from factbook.importers.importer import Importer, Show
from factbook.importers.records import ImportPartRecord
from factbook.importers.registry import ImporterDetail
from factbook.importers.runner import ImportReport, audit_written_set, make_outcome
from factbook.importers.snapshot import PREFIX, name_set
from factbook.importers.writer import ImportTarget, make_import_actor
from factbook.settings.option_tables import DEFAULT_INSTANCE
from factbook.storage import Database

_WITHOUT: Final = (
    "{} has to hold a credential, or the settings a table [integrations.{}.{}] with one."
)

_NONE: Final = "Add a table [importers.KIND.NAME] to the settings, or make one on the page Imports."


class ChosenImport(NamedTuple):
    """Import chosen at the command line: its kind, the name of its account, and options.

    `account` are options of an integration that stand in for a table which the settings do not
    have; `variable` is the one of the environment that gives its credential.
    """

    kind: str
    options: Mapping[str, Any]
    instance: str = DEFAULT_INSTANCE
    account: Mapping[str, Any] | None = None
    variable: str = ""


async def import_from(
    backend: Backend,
    chosen: ChosenImport,
    *,
    plan: bool,
    show: Show = lambda text: None,
    clock: Clock = now,
) -> ImportReport:
    """Read a system and write what it holds, or plan that.

    Raises ConfigurationError for a mistake in the options, and without a credential.
    """
    importer = _chosen_importer(backend, chosen)
    async with backend.opened() as database:
        [report] = await _run_importers(
            backend, database, [importer], plan=plan, show=show, clock=clock
        )
        return report


async def import_configured(
    backend: Backend,
    name: str | None,
    *,
    plan: bool,
    show: Show = lambda text: None,
    clock: Clock = now,
) -> list[ImportReport]:
    """The same for the importer with this id, of the settings or made in the browser, or for all.

    Raises NotFoundError if there is none.
    """
    async with backend.opened() as database:
        every = await backend.importer_registry(database).current()
        wanted = [every[id_] for id_ in sorted(every) if name in (None, id_)]
        if not wanted:
            known = f"There are: {', '.join(sorted(every))}." if every else _NONE
            what = "no importer" if name is None else f'no importer "{name}"'
            raise NotFoundError(f"There is {what}. {known}")
        return await _run_importers(backend, database, wanted, plan=plan, show=show, clock=clock)


def _chosen_importer(backend: Backend, chosen: ChosenImport) -> Importer:
    """The importer that somebody chose.

    It has the id of the one in the settings with this name, and writes into the same sets.
    """
    kind, options = registry.get_kind(chosen.kind), dict(chosen.options)
    accounts = backend.settings.integrations
    if kind.vendor:
        options["integration"] = chosen.instance
        if chosen.instance not in accounts.get(kind.vendor, {}):
            if not chosen.account:
                raise ConfigurationError(_WITHOUT.format(chosen.variable, kind.vendor, chosen[2]))
            accounts = {kind.vendor: {chosen.instance: dict(chosen.account)}}
    return registry.configure_importer(chosen.kind, chosen.instance, options, accounts)


async def _run_importers(
    backend: Backend,
    database: Database,
    importers: Sequence[Importer],
    *,
    plan: bool,
    show: Show,
    clock: Clock,
) -> list[ImportReport]:
    """One import after another."""
    found = []
    try:
        for one in importers:
            client, at = backend.client(one.integration), clock()
            target = _import_target(backend, database, audit_written_set, at)
            report = await runner.run_import(one, client, target, at, plan=plan, show=show)
            found.append(report)
            if not plan:
                end = clock()
                outcome = make_outcome(report, client, end)
                await database.write(
                    partial(
                        records.add_ended_run,
                        importer=one.id,
                        started_at=at,
                        outcome=outcome,
                        now=end,
                    )
                )
    finally:
        await backend.disconnect()
    return found


async def import_parts(backend: Backend) -> list[ImportPartRecord]:
    """Every part that was imported, with its last reading."""
    async with backend.opened() as database:
        return await records.list_part_records(database)


async def importer_detail(backend: Backend, id_: str, clock: Clock = now) -> ImporterDetail:
    """All that is known of the importer with this id; raises NotFoundError if nothing is."""
    async with backend.opened() as database:
        return await registry.get_importer_detail(
            database, backend.importer_registry(database), id_, clock()
        )


async def remove_held(
    backend: Backend, name: str, seen: str, clock: Clock = now
) -> ImportPartRecord:
    """Remove what is held of a part, named by its set, if it still has the tag `seen`.

    Raises the errors of `held.apply`.
    """
    importer, part = _split_part(name)
    async with backend.opened() as database:
        entry = AuditEntry("import.apply", name_set(importer, part))
        target = _import_target(backend, database, entry, at := clock())
        return await writer.apply_removals(
            target, importer, part, make_import_actor(importer, at), seen
        )


async def keep_held(backend: Backend, name: str, seen: str, clock: Clock = now) -> ImportPartRecord:
    """Keep what is held of a part, named by its set, if it still has the tag `seen`.

    Raises the errors of `held.discard`.
    """
    importer, part = _split_part(name)
    async with backend.opened() as database:
        entry = AuditEntry("import.discard", name_set(importer, part))
        target = _import_target(backend, database, entry, clock())
        return await writer.discard_removals(target, importer, part, seen)


def _split_part(name: str) -> tuple[str, str]:
    importer, slash, part = name.removeprefix(PREFIX).partition("/")
    if not slash:
        raise NotFoundError(f'"{name}" is not IMPORTER/PART, such as github/acme.repositories.')
    return importer, part


def _import_target(
    backend: Backend, database: Database, about: AuditEntry | About, at: int
) -> ImportTarget:
    settings = backend.settings
    write = audit_writes(database, Caller(COMMAND_LINE, at), about)
    return ImportTarget(database, PushRules.of(settings), settings.revisions_kept, write)
