"""Commands that work on the database without a server: collection, tokens, people, audit."""

import asyncio
import re
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import structlog

from factbook.app import Application, settle_memory
from factbook.audit import json_lines, trail
from factbook.audit.trail import COMMAND_LINE, About, AuditEntry, AuditPosition, Caller
from factbook.auth import invitations, roles, store, token_rules, tokens, users
from factbook.auth import permissions as known_permissions
from factbook.auth.keys import token_key
from factbook.auth.store import StoredToken
from factbook.auth.token_rules import TokenRequest
from factbook.auth.users import Person
from factbook.catalog import ref as refs
from factbook.catalog.store import collectable as subjects
from factbook.clock import Clock, now
from factbook.collection import start_run
from factbook.errors import InputError, NotFoundError
from factbook.facts import health
from factbook.facts.datasource import DataSource
from factbook.http import audit, urls
from factbook.integrations.integration import Integration
from factbook.scheduling import runs
from factbook.scheduling.runs import RunRecord, SourceHealth
from factbook.storage import Database, Transaction, Write

log = structlog.get_logger("factbook.worker")

# Told again and again how far a run has come.
Show = Callable[[RunRecord], None]


class Status(NamedTuple):
    """A source that is collected, how it is doing (None before its first run), and what is next."""

    source: DataSource
    health: SourceHealth | None
    next_run: int | None


async def work(app: Application) -> None:
    """Collect what is due, and keep house, until told to stop; others take what is under way."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with suppress(asyncio.CancelledError):
        async with app.opened() as database:
            settle_memory()
            registry = app.registry(database)
            sources = sorted((await registry.current()).integrations)
            log.info("worker.started", database=database.dialect, sources=sources)
            await app.worker(database, registry, alone=False).run()
    log.info("worker.stopped")


async def collect(
    app: Application, source_id: str, ref: str | None, show: Show, clock: Clock = now
) -> RunRecord:
    """Collect one source now, for one entity or for all; how it ended.

    Follows the run of all entities that is under way, if there is one. Raises InputError for a
    source that there is not, NotFoundError for such an entity or one that the source is not about.
    """
    async with app.opened() as database:
        integration = await _integration(app, database, source_id)
        run_id = await _begin(database, integration, ref, clock())
        collector = app.collector(database, [integration])
        try:
            while (run := await _run(database, run_id)).finished_at is None:
                show(run)
                await collector.work()
        finally:
            await collector.stop()
        show(run)
        return run


async def statuses(app: Application, clock: Clock = now) -> list[Status]:
    """Every source that is collected, and how it is doing."""
    async with app.opened() as database:
        known = await runs.health(database)
        collected = (await app.registry(database).current()).integrations
    return [
        Status(one.source, known.get(id_), health.next_run(one.source, known.get(id_), clock()))
        for id_, one in collected.items()
    ]


async def create_token(
    app: Application, name: str, owner: str, permissions: Sequence[str], lifetime: str
) -> str:
    """Create a token and return its value, which is never shown again.

    Raises NotAllowedError when the permissions exceed those of an owner who is a person.
    """
    value, duration = tokens.generate(), tokens.lifetime(lifetime)
    wish = TokenRequest(name, known_permissions.checked(permissions), duration)
    user = str(refs.parse(owner, kind="user"))
    digest = tokens.digest(value, token_key(app.settings))

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

    async with app.opened() as database:
        await _writing(database, audit.of_token("token.create"), now())(create)
    return value


async def list_tokens(app: Application) -> list[StoredToken]:
    """Every token that was not revoked, newest first."""
    async with app.opened() as database:
        return await store.listed(database)


async def revoke_token(app: Application, id_or_name: str) -> str:
    """Revoke a token for the next request; its name."""
    async with app.opened() as database:
        write = _writing(database, audit.of_token("token.revoke"), now())
        token = await write(lambda tx: store.revoke(tx, id_or_name, now()))
    return token.name


async def export_audit(
    app: Application,
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
    async with app.opened() as database:
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


async def list_people(app: Application) -> list[Person]:
    """Everybody, in the order of their references."""
    async with app.opened() as database:
        return await users.listed(database)


async def invite(app: Application, role: str | None, server: str | None) -> tuple[str, str]:
    """The link of a new invitation, and the role it gives.

    The role defaults to administrator when there are no people yet, and to viewer otherwise. Raises
    InputError when the address of the service is not known.
    """
    address, secret, at = _address(app, server), invitations.generate(), now()
    digest = invitations.digest(secret, token_key(app.settings))

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

    async with app.opened() as database:
        entry = await _writing(database, lambda made: made, at)(work)
    return urls.welcome(address, secret), entry.detail["role"]


async def reset_password(app: Application, name: str, server: str | None) -> str:
    """The link with which the person of this name sets another password.

    Raises NotFoundError for nobody, ConflictError for one who is disabled, and InputError where
    nothing says at which address the service is.
    """
    address, secret, at = _address(app, server), invitations.generate(), now()
    ref = users.reference(name.removeprefix("user:default/"))
    digest = invitations.digest(secret, token_key(app.settings))
    entry = AuditEntry("person.change", ref, {"changed": "link to set a password"})
    async with app.opened() as database:
        await _writing(database, entry, at)(
            lambda tx: users.reset(tx, ref, digest=digest, made_by=COMMAND_LINE, now=at)
        )
    return urls.welcome(address, secret)


def _address(app: Application, server: str | None) -> str:
    address = server or urls.server(app.settings)
    if address is None:
        raise InputError("The system chooses the port: give the address with --server.")
    return address


def _writing(database: Database, about: AuditEntry | About, now: int) -> Write:
    """Transaction runner that records each write in the audit as made on the command line."""
    return trail.writing(database, Caller(COMMAND_LINE, now), about)


async def _integration(app: Application, database: Database, source_id: str) -> Integration:
    collected = (await app.registry(database).current()).integrations
    found = collected.get(source_id)
    if found is None:
        known = ", ".join(collected) or "none"
        raise InputError(f'No source "{source_id}" is collected. Those that are: {known}.')
    return found


async def _begin(database: Database, integration: Integration, ref: str | None, now: int) -> int:
    """Queue a run, or join the one under way, and return its id."""
    source_id = integration.source.id
    entity_id = None if ref is None else await _entity_id(database, ref)
    write = _writing(database, audit.of_run(source_id, ref), now)
    while True:
        try:
            begun = await start_run.begin(database, integration, entity_id, now, write)
            return begun.run_id
        except start_run.NothingToCollectError:
            text = f"{source_id} is not about {ref}: its entityFilter says so."
            raise NotFoundError(text) from None
        except start_run.UnderWayError:
            run_id = await database.write(lambda tx: runs.under_way(tx, source_id))
            if run_id is not None:  # else it has ended meanwhile
                return run_id


async def _entity_id(database: Database, ref: str) -> int:
    canonical = str(refs.parse(ref, kind="component"))
    found = await subjects.id_of(database, canonical)
    if found is None:
        raise NotFoundError(f"There is no entity {canonical} in the catalog.")
    return found


async def _run(database: Database, run_id: int) -> RunRecord:
    found = await runs.run(database, run_id)
    assert found is not None
    return found
