"""All importers: kinds, those in the settings, and those made in the browser.

A kind has a row here, which describes it without importing it, and a module or folder of its name,
whose IMPORTER it is. People see the status of importers, and change and delete those of their own.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import structlog

import factbook.importers
from factbook.clock import SECOND, Clock, now
from factbook.datasources import clients
from factbook.errors import (
    ConfigurationError,
    ConflictError,
    InvalidItemsError,
    NotFoundError,
    no_such,
    problem,
    suggestion,
)
from factbook.importers import importer_store, records
from factbook.importers.importer import (
    NEVER,
    AccountImporterOptions,
    Importer,
    ImporterKind,
    ImporterOptions,
    ReadingContext,
    Show,
    map_snapshot,
    parse_mapping,
)
from factbook.importers.importer_store import ImporterInput, MakeImporter, StoredImporter
from factbook.importers.records import ImportPartRecord, ImportRun
from factbook.importers.snapshot import PREFIX, ReadingProblem, Snapshot
from factbook.integrations import find_vendor
from factbook.integrations.integration import Integration
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient
from factbook.settings import option_tables
from factbook.storage import Database, Row, Transaction, Write

# Tables by kind or vendor, then by name.
Tables = Mapping[str, Mapping[str, Mapping[str, Any]]]

log = structlog.get_logger("factbook.importing")

# Changes by other processes are seen after this time.
_REFRESH_TIME = SECOND


class KindSummary(NamedTuple):
    """A kind with its title, and a summary of what it imports."""

    id: str
    title: str
    brings: str


KINDS: Final = (
    KindSummary("aws", "AWS Organizations", "Accounts of an organization, as resources."),
    KindSummary("catalog", "Catalog", "Entities of a Backstage, Roadie or other Factbook."),
    KindSummary("gitea", "Gitea or Forgejo", "Repositories, teams and members of organizations."),
    KindSummary("github", "GitHub", "Repositories, teams and members of organizations."),
    KindSummary("gitlab", "GitLab", "Projects, subgroups and members of groups."),
    KindSummary("kubernetes", "Kubernetes", "Workloads of a cluster, as components."),
    KindSummary("ldif", "LDIF file", "People and groups that a directory exported."),
)


def get_kind(id_: str) -> ImporterKind[Any]:
    """The export of a kind's module; raises ConfigurationError if there is none."""
    known = [one.id for one in KINDS]
    if id_ not in known:
        raise ConfigurationError(f"There is no importer {id_!r}.{suggestion(id_, known)}")
    # Slow to import, and unused unless configured.
    found: ImporterKind[Any] = import_module(f"{factbook.importers.__name__}.{id_}").IMPORTER
    return found


def configure_importers(
    tables: Tables, accounts: Tables, *, clock: Clock = now
) -> tuple[Importer, ...]:
    """The importers that the settings configure; raises ConfigurationError naming the table.

    `accounts` are the tables of the integrations.
    """
    found: dict[str, Importer] = {}
    for id_, named in tables.items():
        for name, values in named.items():
            one = configure_importer(id_, name, values, accounts, clock=clock)
            if found.setdefault(one.id, one) is not one:
                raise ConfigurationError(f"importers.{id_}.{name}: {one.id!r} is there twice.")
    return tuple(found.values())


def configure_importer(
    kind_id: str,
    name: str,
    values: Mapping[str, Any],
    accounts: Tables,
    *,
    clock: Clock = now,
    edition: str = "",
) -> Importer:
    """The importer that a table describes; raises ConfigurationError naming the table.

    `edition` is that of a credential of its own, and of no other.
    """
    found = get_kind(kind_id)
    where = f"importers.{kind_id}.{name}"
    options = option_tables.read_option_table(where, name, values, found.options)
    for mapped, fields in options.mapping.items():
        if found.makes and isinstance(fields, dict) and mapped.lower() not in found.makes:
            made = ", ".join(found.makes)
            raise ConfigurationError(f"{where}: mapping.{mapped} matches nothing of: {made}.")
    id_ = option_tables.source_id(kind_id, name)
    title = option_tables.instance_title(found.title, name)
    account, integration = None, None
    if found.vendor:
        account, integration = _configure_account(where, found.vendor, options, accounts, clock)
    try:
        options = found.completed(options, account)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error.message}") from None
    if integration is None:
        integration = replace(found.access(options).integration(id_, title), edition=edition)
    elif integration.credential == where:
        integration = replace(integration, edition=edition)
    further = options.further()
    if own := further.keys() & {integration.base_url, *integration.further}:
        raise ConfigurationError(
            f"{where}: {min(own)} is the code host itself, whose files are read without text_hosts."
        )
    integration = replace(integration, further={**integration.further, **further})
    source = replace(integration.source, id=f"{PREFIX}{id_}", title=title)
    # Clients of one credential share its limits.
    return Importer(
        id=id_,
        kind=kind_id,
        title=title,
        every=options.interval,
        integration=replace(integration, source=source, credential=integration.credential),
        read=partial(_read_mapped, found, options, account),
        events=found.events(options),
        reread=partial(_reread_mapped, found, options, account),
    )


def _configure_account(
    where: str, vendor_id: str, options: ImporterOptions, accounts: Tables, clock: Clock
) -> tuple[Any, Integration]:
    """The options and the integration of the account that an importer reads with."""
    assert isinstance(options, AccountImporterOptions), "what a kind with a vendor declares"
    name = options.integration
    table = options.account or accounts.get(vendor_id, {}).get(name)
    if table is None:
        raise ConfigurationError(
            f"{where}: there is no table [integrations.{vendor_id}.{name}] with the credential."
        )
    found = find_vendor(vendor_id)
    read = option_tables.read_options(vendor_id, name, table, found.options)
    integration = found.configured(name, table, clock=clock)
    if options.account:
        # Another credential than that of the table with this name.
        integration = replace(integration, credential=where)
    return read, integration


async def _reread_mapped(
    kind: ImporterKind[Any],
    options: ImporterOptions,
    account: Any,
    client: HttpClient,
    memory: Memory,
    at: int,
    hints: Sequence[str],
) -> Snapshot:
    assert kind.reread is not None, "what a kind that takes events has"
    context = ReadingContext(client, memory, at, account)
    return await _apply_mapping(options, await kind.reread(context, options, hints))


async def _read_mapped(
    kind: ImporterKind[Any],
    options: ImporterOptions,
    account: Any,
    client: HttpClient,
    memory: Memory,
    at: int,
    show: Show,
) -> Snapshot:
    snapshot = await kind.read(ReadingContext(client, memory, at, account), options, show)
    if options.mapping:
        show("Mapping")
    return await _apply_mapping(options, snapshot)


async def _apply_mapping(options: ImporterOptions, snapshot: Snapshot) -> Snapshot:
    """The snapshot by the mapping of the options."""
    if not options.mapping:
        return snapshot
    return await asyncio.to_thread(map_snapshot, snapshot, parse_mapping(options.mapping))


class ImporterRegistry:
    """Registry of every importer, by its id; stored ones are reloaded when one has changed."""

    def __init__(
        self,
        database: Database,
        configured: Sequence[Importer],
        accounts: Tables,
        clock: Clock,
        key: Callable[[], bytes],
    ) -> None:
        """`accounts` are the tables of integrations in the settings.

        `key` returns the key that encrypts the secrets of stored importers.
        """
        self._database = database
        self.configured: Mapping[str, Importer] = {one.id: one for one in configured}
        self.accounts = accounts
        self._clock = clock
        self._key = key
        self._known = self.configured
        self._stored: Mapping[str, StoredImporter] = {}
        self._problems: Mapping[str, str] = {}
        self._revision: int | None = None
        self._asked_at: int | None = None
        self._asking = asyncio.Lock()

    async def current(self) -> Mapping[str, Importer]:
        """The current importers: the same mapping until one of them changes."""
        async with self._asking:
            if self._asked_at is None or not 0 <= self._clock() - self._asked_at < _REFRESH_TIME:
                await self._ask()
        return self._known

    async def latest(self) -> Mapping[str, Importer]:
        """The importers at this moment, including changes by other processes."""
        self.forget()
        return await self.current()

    @property
    def stored(self) -> Mapping[str, StoredImporter]:
        """The stored importers, as last read; those of the settings win."""
        return self._stored

    @property
    def problems(self) -> Mapping[str, str]:
        """The reason for each stored importer that cannot be used, as last read."""
        return self._problems

    def forget(self) -> None:
        """Reload on the next call, after a write."""
        self._asked_at = None

    async def one(self, id_: str) -> Importer:
        """The importer with this id; raises NotFoundError."""
        known = await self.current()
        found = known.get(id_)
        if found is None:
            raise no_such("importer", id_, known)
        return found

    def maker(self, kind: str, name: str, edition: str = "") -> MakeImporter:
        """Maker of the importer of a kind and a name from its options."""
        return partial(_configure_stored, kind, name, self.accounts, self._clock, edition)

    async def _ask(self) -> None:
        # Later writes may be missed; they call `forget`.
        self._asked_at = self._clock()
        try:
            revision = await importer_store.get_importers_revision(self._database)
            if revision == self._revision:
                return
            rows = await importer_store.list_importer_rows(self._database)
        except BaseException:
            self._asked_at = None
            raise
        self._read([row for row in rows if row[0] not in self.configured])
        self._revision = revision

    def _read(self, rows: Sequence[Row]) -> None:
        found, problems = dict[str, Importer](), dict[str, str]()
        self._stored = {row[0]: importer_store.make_stored_importer(row) for row in rows}
        for id_, stored in self._stored.items():
            [row] = (row for row in rows if row[0] == id_)
            make = self.maker(stored.kind, stored.name, str(stored.updated_at))
            try:
                found[id_] = importer_store.open_importer(row, self._key(), make)
            except ConfigurationError as error:
                log.error("importer.unusable", importer=id_, reason=error.message)
                problems[id_] = error.message
        self._known, self._problems = {**found, **self.configured}, problems


def _configure_stored(
    kind: str,
    name: str,
    accounts: Tables,
    clock: Clock,
    edition: str,
    options: Mapping[str, Any],
) -> Importer:
    return configure_importer(kind, name, options, accounts, clock=clock, edition=edition)


def make_file_page_url(importer: str, problem: ReadingProblem) -> str | None:
    """The address of the page of a problem's file; None where that is not known.

    Untrusted text only becomes a path: the host comes from the importer's options.
    """
    host, _, path = problem.origin.partition("/")
    owner = path.partition("/")[0]
    # A file of another repository begins with its name.
    if not (owner and problem.file) or problem.file.startswith(f"{owner}/"):
        return None
    kind = next((one.id for one in KINDS if f"{importer}-".startswith(f"{one.id}-")), None)
    pattern = "" if kind is None else get_kind(kind).file_page
    if not pattern:
        return None
    line = f"#L{problem.line}" if problem.line else ""
    return (
        f"https://{quote(host, safe=':')}/{quote(path)}/{pattern.format(quote(problem.file))}{line}"
    )


_OF_SETTINGS: Final = "The importer {} comes from the settings: change it there."


def list_offered_kinds() -> list[KindSummary]:
    """The kinds that people may make importers of."""
    return [one for one in KINDS if get_kind(one.id).by_people]


def get_offered_kind(id_: str) -> ImporterKind[Any]:
    """The kind with this id, if people may make importers of it; raises NotFoundError."""
    try:
        found = get_kind(id_)
    except ConfigurationError:
        found = None
    if found is None or not found.by_people:
        known = suggestion(id_, (one.id for one in list_offered_kinds()))
        raise NotFoundError(f'There is no importer of the kind "{id_}" to make here.{known}')
    return found


async def put_importer(
    registry: ImporterRegistry,
    wanted: ImporterInput,
    key: bytes,
    *,
    actor: str,
    now: int,
    write: Write,
) -> StoredImporter:
    """Create or change an importer; its secrets are encrypted with the key of the tokens.

    One that is changed is run soon, unless it only runs when asked.
    Raises NotFoundError for a kind that there is not, InvalidItemsError, which contains no value,
    and ConflictError if it comes from the settings, if a new one is there already, if values to
    keep cannot be decrypted, or if there are too many.
    """
    get_offered_kind(wanted.kind)
    if wanted.id in registry.configured:
        raise ConflictError(_OF_SETTINGS.format(wanted.id))
    stored = registry.stored.get(wanted.id)
    if stored is not None and (stored.kind, stored.name) != (wanted.kind, wanted.name):
        raise InvalidItemsError([problem("name", "is the id of another importer")])
    make = registry.maker(wanted.kind, wanted.name)

    def work(transaction: Transaction) -> StoredImporter:
        found = importer_store.save_importer(transaction, wanted, key, make, actor, now)
        # One that is new is due by its cadence.
        if not wanted.is_new and wanted.values.get("every") != NEVER:
            records.request_run(transaction, found.id, now)
        return found

    found = await write(work)
    registry.forget()
    log.info("importer.put", importer=found.id, actor=actor)
    return found


async def delete_importer(
    registry: ImporterRegistry, id_: str, *, actor: str, write: Write
) -> None:
    """Delete an importer, its runs, its hints and what it remembers; its entities stay.

    Raises NotFoundError, and ConflictError if it comes from the settings.
    """
    if id_ in registry.configured:
        raise ConflictError(_OF_SETTINGS.format(id_))

    def work(transaction: Transaction) -> StoredImporter:
        found = importer_store.remove_importer(transaction, id_)
        if found is None:
            raise no_such("importer", id_, registry.stored)
        records.forget_runs(transaction, id_)
        records.forget_hints(transaction, id_)
        clients.delete_source_memories(transaction, f"{PREFIX}{id_}")
        return found

    await write(work)
    registry.forget()
    log.info("importer.deleted", importer=id_, actor=actor)


class ImporterStatus(NamedTuple):
    """An importer with the run that waits or is under way, the last that ended, and its parts.

    The `parts` are those of its last reading, without those that it no longer reads.
    `next_at` is the time of its next run by itself.
    """

    importer: Importer
    under_way: ImportRun | None
    last: ImportRun | None
    parts: Sequence[ImportPartRecord]
    next_at: int | None

    @property
    def state(self) -> str:
        """`new`, waiting, running, or the state in which the last run ended.

        One that held removals is complete when somebody has decided on all of them.
        """
        if self.under_way is not None:
            return self.under_way.state
        state = self.last.state if self.last else "new"
        return "complete" if state == "held" and not self.held else state

    @property
    def complete_at(self) -> int | None:
        """Time of the last complete reading of every part; None if one never was."""
        times = [part.complete_at for part in self.parts]
        return None if None in times else min(filter(None, times), default=None)

    @property
    def problems(self) -> int:
        """Problems of the last reading."""
        return sum(part.problem_count for part in self.parts)

    @property
    def held(self) -> int:
        """Removals that wait for a decision."""
        return sum(len(part.held) for part in self.parts)


class ImporterDetail(NamedTuple):
    """All that is known of an importer: every part that it ever read, and its runs, newest first.

    `status` is None for a removed or unusable importer, and `problem` has the reason; `stored` is
    set if users made the importer.
    """

    id: str
    status: ImporterStatus | None
    stored: StoredImporter | None
    problem: str
    parts: Sequence[ImportPartRecord]
    runs: Sequence[ImportRun]

    @property
    def current(self) -> Sequence[ImportPartRecord]:
        """The parts but those that the last reading had no more."""
        return self.parts if self.status is None else self.status.parts


async def get_importer_detail(
    database: Database, registry: ImporterRegistry, id_: str, now: int
) -> ImporterDetail:
    """The importer with this id, or what one left behind; raises NotFoundError without either."""
    known = await registry.current()
    importer = known.get(id_)
    stored, problem = registry.stored.get(id_), registry.problems.get(id_, "")
    parts = await records.list_part_records(database, id_)
    runs = await records.list_recent_import_runs(database, id_)
    if importer is None and stored is None and not parts and not runs:
        raise no_such("importer", id_, known)
    status = None
    if importer is not None:
        ended = next((run for run in runs if run.ended_at is not None), None)
        status = _make_status(importer, runs[0] if runs else None, ended, parts, now)
    return ImporterDetail(id_, status, stored, problem, parts, runs)


async def list_importer_statuses(
    database: Database, importers: Iterable[Importer], now: int
) -> list[ImporterStatus]:
    """The status of each of these importers, by id."""
    newest, ended = (
        await records.get_latest_runs(database),
        await records.get_latest_ended_runs(database),
    )
    parts: dict[str, list[ImportPartRecord]] = {}
    for part in await records.list_part_records(database):
        parts.setdefault(part.importer, []).append(part)
    return [
        _make_status(one, newest.get(one.id), ended.get(one.id), parts.get(one.id, ()), now)
        for one in sorted(importers, key=lambda one: one.id)
    ]


def _make_status(
    importer: Importer,
    newest: ImportRun | None,
    ended: ImportRun | None,
    parts: Sequence[ImportPartRecord],
    now: int,
) -> ImporterStatus:
    under_way = newest if newest is not None and newest.ended_at is None else None
    read_at = max((part.read_at for part in parts), default=0)
    current = [part for part in parts if part.read_at == read_at]
    next_at = records.compute_next_start(importer.every, newest, now)
    return ImporterStatus(importer, under_way, ended, current, next_at)
