"""Commands that work on the database without a server: collection, tokens, people, audit."""

import asyncio
import math
import re
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import structlog

from factbook import process, shutdown
from factbook.audit import json_lines, trail
from factbook.audit.trail import COMMAND_LINE, About, AuditEntry, AuditPosition, Caller
from factbook.auth import invitations, roles, token_rules, tokens, users
from factbook.auth import permissions as known_permissions
from factbook.auth.encryption import token_key
from factbook.auth.token_rules import TokenRequest
from factbook.auth.tokens import StoredToken
from factbook.auth.users import Person
from factbook.backend import Backend
from factbook.catalog import ref as refs
from factbook.clock import SECOND, Clock, iso, now
from factbook.collection import run_now, run_start
from factbook.collection.run_start import NothingToCollectError
from factbook.datasources import source_detail
from factbook.errors import InputError, NotFoundError
from factbook.facts import health
from factbook.facts.datasource import DataSource
from factbook.http import audit, urls
from factbook.integrations.integration import Integration
from factbook.scheduling import retention_clock, runs
from factbook.scheduling.leadership import Leadership, Role
from factbook.scheduling.runs import RunRecord, SourceHealth
from factbook.storage import Database, Transaction, Write

if TYPE_CHECKING:
    from factbook.collection.lanes import LaneCollector

log = structlog.get_logger("factbook.worker")

# Told again and again how far a run has come.
Show = Callable[[RunRecord], None]
_SHOWN_EVERY = 0.5


class SourceStatus(NamedTuple):
    """A collected source: its health at a given time (None: it never ran) and its next run."""

    source: DataSource
    health: SourceHealth | None
    next_run: int | None
    at: int


async def work(backend: Backend, sharing: "type[LaneCollector] | None" = None) -> None:
    """Collect due sources and do the housekeeping until told to stop; hand over unfinished work.

    On PostgreSQL with other workers, if `sharing` is given.
    """
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    working = asyncio.create_task(_work(backend, sharing))
    working.add_done_callback(lambda _: told.set())
    await told.wait()
    shutdown.exit_within()
    await shutdown.cancel([working], math.inf)
    with suppress(asyncio.CancelledError):
        working.result()
    log.info("worker.stopped")


async def _work(backend: Backend, sharing: "type[LaneCollector] | None") -> None:
    async with backend.opened() as database:
        process.settle_memory()
        registry = backend.registry(database)
        sources = sorted((await registry.current()).integrations)
        log.info("worker.started", database=database.dialect, sources=sources)
        if database.dialect == "sqlite":
            sharing = None
        elif sharing is None:
            missing = "Install factbook[workers] for workers that share the work."
            log.warning("worker.shares_nothing", advice=missing)
        role: Role = "worker" if sharing is None else "sharing"
        await backend.worker(database, registry, role, sharing).run()


async def collect(
    backend: Backend, source_id: str, ref: str | None, show: Show, clock: Clock = now
) -> RunRecord:
    """Collect one source now, for one entity or for all, and return how the run ended.

    Follows the run of all entities that is under way, if there is one, and leaves the work to the
    process that collects, if there is one. Raises InputError for an unknown source, NotFoundError
    for an unknown entity or one that the source does not cover.
    """
    async with backend.opened() as database:
        integration = await _integration(backend, database, source_id)
        leadership = Leadership(database, process.holder(), "server", clock)
        collector = backend.collector(database, [integration], clock=leadership.clock)
        try:
            await leadership.held()
            run_id = await _begin(database, integration, ref, leadership.clock())
            while (run := await _run(database, run_id)).finished_at is None:
                show(run)
                if await leadership.held():
                    await collector.work()
                else:
                    await collector.let_go()
                    await asyncio.sleep(_SHOWN_EVERY)
        finally:
            await collector.stop()
            await leadership.release()
        show(run)
        return run


async def statuses(backend: Backend, clock: Clock = now) -> list[SourceStatus]:
    """List every collected source with its health."""
    async with backend.opened() as database:
        known = await runs.health(database)
        collected = (await backend.registry(database).current()).integrations
    at, sources = clock(), [one.source for one in collected.values()]
    found = [(source, known.get(source.id)) for source in sources]
    return [SourceStatus(*each, health.next_run(*each, at), at) for each in found]


async def detail(backend: Backend, id_: str, *, failed: bool) -> source_detail.Detail:
    """Details of the source with this id; raises InputError for one that is not collected."""
    async with backend.opened() as database:
        source = (await _integration(backend, database, id_)).source
        return await source_detail.detail(database, source, now(), failed=failed)


async def create_token(
    backend: Backend, name: str, owner: str, permissions: Sequence[str], lifetime: str
) -> str:
    """Create a token and return its value, which is never shown again.

    Raises NotAllowedError when the permissions exceed those of an owner who is a person.
    """
    value, duration = tokens.generate(), tokens.lifetime(lifetime)
    wish = TokenRequest(name, known_permissions.checked(permissions), duration)
    user = str(refs.parse(owner, kind="user"))
    digest = tokens.digest(value, token_key(backend.settings))

    def create(transaction: Transaction) -> StoredToken:
        return token_rules.make(
            transaction,
            wish,
            digest=digest,
            owner=user,
            held=known_permissions.NAMES,
            created_by=COMMAND_LINE,
            now=now(),
        )

    async with backend.opened() as database:
        await _writing(database, audit.of_token("token.create"), now())(create)
    return value


async def list_tokens(backend: Backend) -> list[StoredToken]:
    """List the tokens that are not revoked, newest first."""
    async with backend.opened() as database:
        return await tokens.listed(database)


async def revoke_token(backend: Backend, id_or_name: str) -> str:
    """Revoke a token from the next request on; returns its name."""
    async with backend.opened() as database:
        write = _writing(database, audit.of_token("token.revoke"), now())
        token = await write(lambda tx: tokens.revoke(tx, id_or_name, now()))
    return token.name


async def export_audit(
    backend: Backend,
    write: Callable[[bytes], object],
    after: str | None = None,
    *,
    warn: Callable[[str], object],
    since: int | None = None,
    until: int | None = None,
    follow: bool = False,
    every: float = 10,
    clock: Clock = now,
) -> None:
    """Write the audit as JSON lines, oldest first, starting after the cursor `after`.

    With `follow` it polls every `every` seconds until cancelled, and exports only records old
    enough that none can still precede them. Calls `warn` when the clock was set back. Raises
    InputError for an invalid cursor.
    """
    if after is not None and not re.fullmatch(json_lines.CURSOR, after):
        raise InputError(f'--after takes the "cursor" of a line, not "{after}".')
    place = None if after is None else json_lines.place(after)
    watch = json_lines.ClockWatch(warn)
    async with backend.opened() as database:
        while True:
            end = until
            if follow:
                end = clock() - json_lines.SETTLED
                watch.look(clock(), place)
            async for records in trail.export(database, since=since, until=end, after=place):
                write(json_lines.encoded(records))
                place = AuditPosition(records[-1].at, records[-1].id)
            if not follow:
                return
            await asyncio.sleep(every)


async def list_people(backend: Backend) -> list[Person]:
    """List all people, ordered by reference."""
    async with backend.opened() as database:
        return await users.listed(database)


async def invite(backend: Backend, role: str | None, server: str | None) -> tuple[str, str]:
    """The link of a new invitation, and the role it gives.

    The role defaults to administrator when there are no people yet, and to viewer otherwise. Raises
    InputError when the address of the service is not known.
    """
    address, secret, at = urls.address(backend.settings, server), invitations.generate(), now()
    digest = invitations.digest(secret, token_key(backend.settings))

    def work(transaction: Transaction) -> AuditEntry:
        given, lifetime = role or roles.ADMINISTRATOR, invitations.LIFETIME
        # Such a link ends with the first person, whoever becomes that.
        first = given == roles.ADMINISTRATOR
        if not (first and invitations.replace_first(transaction, digest, at, lifetime)):
            given = role or roles.VIEWER
            invitations.make(
                transaction,
                digest=digest,
                role=given,
                made_by=COMMAND_LINE,
                now=at,
                lifetime=lifetime,
            )
        return AuditEntry("person.invite", digest[: invitations.ID], {"role": given})

    async with backend.opened() as database:
        entry = await _writing(database, lambda made: made, at)(work)
    return urls.welcome(address, secret), entry.detail["role"]


async def reset_password(backend: Backend, name: str, server: str | None) -> str:
    """The link with which the person of this name sets another password.

    Raises NotFoundError for an unknown person, ConflictError for a disabled one, and InputError
    when the address of the service is not known.
    """
    address, secret, at = urls.address(backend.settings, server), invitations.generate(), now()
    ref = users.reference(name.removeprefix("user:default/"))
    digest = invitations.digest(secret, token_key(backend.settings))
    entry = AuditEntry("person.change", ref, {"changed": "link to set a password"})
    async with backend.opened() as database:
        await _writing(database, entry, at)(
            lambda tx: users.reset(tx, ref, digest=digest, made_by=COMMAND_LINE, now=at)
        )
    return urls.welcome(address, secret)


async def confirm_clock(backend: Backend, today: date, clock: Clock = now) -> int:
    """Believe this machine's clock where it shows `today`, give or take a time zone.

    Returns the time up to which data was deleted before, in milliseconds since the epoch. Raises
    InputError when the clock shows another day.
    """
    at = clock()
    shown = datetime.fromtimestamp(at / SECOND, UTC)
    if abs(shown.date() - today) > timedelta(days=1):
        raise InputError(f"The clock of this machine shows {shown:%Y-%m-%d}. Set it first.")
    async with backend.opened() as database:
        write = _writing(
            database, lambda before: AuditEntry("clock.confirm", "", {"before": iso(before)}), at
        )
        return await write(lambda tx: retention_clock.confirm(tx, at).trusted_at)


def _writing(database: Database, about: AuditEntry | About, now: int) -> Write:
    """Transaction runner that records each write in the audit as made on the command line."""
    return trail.writing(database, Caller(COMMAND_LINE, now), about)


async def _integration(backend: Backend, database: Database, source_id: str) -> Integration:
    collected = (await backend.registry(database).current()).integrations
    found = collected.get(source_id)
    if found is None:
        known = ", ".join(collected) or "none"
        raise InputError(f'No source "{source_id}" is collected. Those that are: {known}.')
    return found


async def _begin(database: Database, integration: Integration, ref: str | None, now: int) -> int:
    """Queue a run, or join the one under way, and return its id."""
    source_id = integration.source.id
    entity_id = None
    if ref is not None:
        entity_id = await run_now.entity_id(database, str(refs.parse(ref, kind="component")))
    write = _writing(database, audit.of_run(source_id, ref), now)
    try:
        return await run_start.begin_or_join(database, integration, now, entity_id, write)
    except NothingToCollectError:
        text = f"{source_id} is not about {ref}: its entityFilter says so."
        raise NotFoundError(text) from None


async def _run(database: Database, run_id: int) -> RunRecord:
    found = await runs.run(database, run_id)
    assert found is not None
    return found
