"""Commands on the database, without a server: tokens, people, the audit, and collection."""

import asyncio
import math
import re
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

import structlog

from factbook import process, shutdown
from factbook.audit import trail as audit_trail
from factbook.audit.trail import (
    AUDIT_CURSOR,
    COMMAND_LINE,
    SETTLED,
    About,
    AuditEntry,
    AuditPosition,
    Caller,
    ClockWatch,
    encode_records,
    split_audit_cursor,
)
from factbook.auth import group_roles, invitations, token_rules, tokens, users
from factbook.auth import permissions as known_permissions
from factbook.auth.encryption import find_token_key
from factbook.auth.token_rules import TokenRequest
from factbook.auth.tokens import StoredToken
from factbook.auth.users import Person
from factbook.backend import Backend
from factbook.catalog import ref as refs
from factbook.clock import SECOND, Clock, iso, now
from factbook.collection import run_start
from factbook.collection.run_start import NothingToCollectError
from factbook.errors import InputError, NotFoundError
from factbook.facts import freshness, store
from factbook.facts.datasource import DataSource
from factbook.http import audit
from factbook.http.requests import render_welcome_link, require_address
from factbook.integrations.integration import Integration
from factbook.operations import erasure
from factbook.operations.erasure import ErasureReport
from factbook.scheduling import housekeeping, runs
from factbook.scheduling.lease import Leadership, Role
from factbook.scheduling.runs import RunRecord, SourceHealth
from factbook.scim import identity
from factbook.scim.identity import Confirmation, NewAccount
from factbook.storage import Database, Transaction, Write

if TYPE_CHECKING:
    from factbook.collection.lanes import LaneCollector


def token_permissions(
    named: Collection[str], presets: Collection[str], *, everything: bool
) -> frozenset[str]:
    """Choose the permissions of a new token; by default it may only read. Raises InputError."""
    if everything and (named or presets):
        raise InputError("--all includes every permission: leave out --permission and --preset.")
    if everything:
        return known_permissions.PERMISSION_NAMES
    chosen = known_permissions.check_permissions(named) | known_permissions.expand_presets(presets)
    return chosen or known_permissions.READING


async def create_token(
    backend: Backend,
    name: str,
    owner: str,
    permissions: Collection[str],
    lifetime: str,
    narrowed: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> str:
    """Create a token and return its value, which is never shown again.

    Raises NotAllowedError when the permissions exceed those of an owner who is a person.
    """
    value, duration = tokens.generate_token(), tokens.convert_lifetime(lifetime)
    known = known_permissions.check_permissions(permissions)
    wish = TokenRequest(name, known, duration, tokens.check_narrowing(narrowed))
    user = str(refs.parse_ref(owner, kind="user"))
    digest = tokens.hash_token(value, find_token_key(backend.settings))

    def create(transaction: Transaction) -> StoredToken:
        return token_rules.make_token(
            transaction,
            wish,
            digest=digest,
            owner=user,
            held=known_permissions.PERMISSION_NAMES,
            created_by=COMMAND_LINE,
            now=now(),
        )

    async with backend.opened() as database:
        await recorded_write(database, audit.make_token_entry("token.create"), now())(create)
    return value


async def list_tokens(backend: Backend) -> list[StoredToken]:
    """List the tokens that are not revoked, newest first."""
    async with backend.opened() as database:
        return await tokens.list_tokens(database)


async def revoke_token(backend: Backend, id_or_name: str) -> str:
    """Revoke a token from the next request on; returns its name."""
    async with backend.opened() as database:
        write = recorded_write(database, audit.make_token_entry("token.revoke"), now())
        token = await write(lambda tx: tokens.revoke_token(tx, id_or_name, now()))
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

    With `follow`, polls every `every` seconds until cancelled, and exports only records old enough
    that no earlier one can still appear. Calls `warn` when the clock was set back. Raises
    InputError for an invalid cursor.
    """
    if after is not None and not re.fullmatch(AUDIT_CURSOR, after):
        raise InputError(f'--after takes the "cursor" of a line, not "{after}".')
    place = None if after is None else split_audit_cursor(after)
    watch = ClockWatch(warn)
    async with backend.opened() as database:
        while True:
            end = until
            if follow:
                end = clock() - SETTLED
                watch.look(clock(), place)
            async for records in audit_trail.export_audit(
                database, since=since, until=end, after=place
            ):
                write(encode_records(records))
                place = AuditPosition(records[-1].at, records[-1].id)
            if not follow:
                return
            await asyncio.sleep(every)


async def list_people(backend: Backend) -> list[Person]:
    """List all people, ordered by reference."""
    async with backend.opened() as database:
        return await users.list_users(database)


async def make_invitation(
    backend: Backend, name: str | None, role: str | None, server: str | None, *, confirmed: bool
) -> tuple[str, str]:
    """Create an invitation; returns its link and the role it gives.

    The role defaults to administrator for the first account, whose owner chooses the name, and to
    viewer otherwise. Raises InputError if the service's address or the name is missing, and
    ConflictError for a name in use, unless `confirmed` says the invitation is for that person.
    """
    address, secret, at = (
        require_address(backend.settings, server),
        invitations.generate_invitation_secret(),
        now(),
    )
    digest = invitations.hash_invitation_secret(secret, find_token_key(backend.settings))
    rules = group_roles.make_group_rules(backend.settings)
    ref = None if name is None else _user_reference(name)

    def work(transaction: Transaction) -> AuditEntry:
        given, lifetime = role or known_permissions.ADMINISTRATOR, invitations.INVITATION_LIFETIME
        # Such a link expires once anyone becomes the first person.
        first = given == known_permissions.ADMINISTRATOR and ref is None
        if not (first and invitations.replace_first_invitation(transaction, digest, at, lifetime)):
            given = role or known_permissions.VIEWER
            if ref is None:
                raise InputError("Name the person: factbook people invite NAME.")
            scim_id = identity.check_invitation(transaction, ref, rules, confirmed=confirmed)
            invitations.create_invitation(
                transaction,
                digest=digest,
                role=given,
                made_by=COMMAND_LINE,
                now=at,
                lifetime=lifetime,
                new_ref=ref,
                scim_id=scim_id,
            )
        detail = {"role": given, "person": ref or ""}
        return AuditEntry("person.invite", digest[: invitations.ID_LENGTH], detail)

    async with backend.opened() as database:
        entry = await recorded_write(database, lambda made: made, at)(work)
    return render_welcome_link(address, secret), entry.detail["role"]


async def confirm_person(backend: Backend, name: str, user_name: str) -> Confirmation:
    """Confirm that an account belongs to the catalog user of its name, and to a SCIM user.

    Raises the errors of `identity.confirm_account`.
    """
    ref, at, rules = _user_reference(name), now(), group_roles.make_group_rules(backend.settings)
    caller = Caller(COMMAND_LINE, at)
    async with backend.opened() as database:
        return await recorded_write(database, identity.audit_confirmation, at)(
            lambda tx: identity.confirm_account(tx, ref, rules, caller, user_name)
        )


async def add_person(backend: Backend, wish: NewAccount) -> Confirmation:
    """Create the account of a person who signs in at the OpenID Connect provider.

    Raises InputError if no provider is configured, and the errors of `identity.add_account`.
    """
    issuer, at = backend.settings.openid.get("issuer"), now()
    if not issuer:
        raise InputError("The settings name no OpenID Connect provider: fill the table [openid].")
    rules, caller = group_roles.make_group_rules(backend.settings), Caller(COMMAND_LINE, at)
    async with backend.opened() as database:
        return await recorded_write(database, identity.audit_confirmation, at)(
            lambda tx: identity.add_account(tx, wish, issuer, rules, caller)
        )


async def erase_person(
    backend: Backend, name: str, agree: Callable[[ErasureReport], None] | None
) -> ErasureReport:
    """Erase a person's data unless `agree` raises; without `agree`, only count the records.

    Raises the errors of `erasure.preview_erasure`.
    """
    ref, caller = _user_reference(name), Caller(COMMAND_LINE, now())
    async with backend.opened() as database:
        report = await erasure.preview_erasure(database, ref, caller)
        if agree is None:
            return report
        agree(report)
        return await erasure.erase_data_of(database, ref, caller)


def _user_reference(name: str) -> str:
    return users.make_user_ref(name.removeprefix(users.PREFIX))


async def make_reset_link(backend: Backend, name: str, server: str | None) -> str:
    """Make a link with which the person of this name sets a new password.

    Raises NotFoundError for an unknown person, ConflictError for a disabled account, and InputError
    if the service's address isn't known.
    """
    address, secret, at = (
        require_address(backend.settings, server),
        invitations.generate_invitation_secret(),
        now(),
    )
    ref = _user_reference(name)
    digest = invitations.hash_invitation_secret(secret, find_token_key(backend.settings))
    entry = AuditEntry("person.change", ref, {"changed": "link to set a password"})
    async with backend.opened() as database:
        await recorded_write(database, entry, at)(
            lambda tx: users.create_password_link(
                tx, ref, digest=digest, made_by=COMMAND_LINE, now=at
            )
        )
    return render_welcome_link(address, secret)


async def confirm_retention_clock(backend: Backend, today: date, clock: Clock = now) -> int:
    """Trust this machine's clock if it shows `today` in some time zone.

    Returns the time trusted before, in milliseconds since the epoch. Raises InputError if the clock
    shows another day.
    """
    at = clock()
    shown = datetime.fromtimestamp(at / SECOND, UTC)
    if abs(shown.date() - today) > timedelta(days=1):
        raise InputError(f"The clock of this machine shows {shown:%Y-%m-%d}. Set it first.")
    async with backend.opened() as database:
        write = recorded_write(
            database, lambda before: AuditEntry("clock.confirm", "", {"before": iso(before)}), at
        )
        return await write(lambda tx: housekeeping.confirm_retention_clock(tx, at).trusted_at)


def recorded_write(database: Database, about: AuditEntry | About, now: int) -> Write:
    """Make a transaction runner that audits each write as made on the command line."""
    return audit_trail.audit_writes(database, Caller(COMMAND_LINE, now), about)


log = structlog.get_logger("factbook.worker")

# Called repeatedly with the progress of a run.
ShowRun = Callable[[RunRecord], None]
_SHOWN_EVERY = 0.5
MOST_FAILED: Final = 1_000
_KEPT_FOR_A_WHILE: Final = "nothing new came; older values are kept for a while"


class SourceDetail(NamedTuple):
    """A source, its health, its last run with gaps, and entities for which it failed."""

    source: DataSource
    condition: freshness.Condition
    run: RunRecord | None
    gaps: list[runs.CountedGap]
    failed: list[tuple[str, str]]


class SourceStatus(NamedTuple):
    """A collected source, its health at a given time (None if it never ran), and its next run."""

    source: DataSource
    health: SourceHealth | None
    next_run: int | None
    at: int


async def run_collector(backend: Backend, sharing: "type[LaneCollector] | None" = None) -> None:
    """Collect due sources and do the housekeeping until stopped; hand over unfinished work.

    With `sharing`, workers on PostgreSQL share the collection.
    """
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    working = asyncio.create_task(_collect_until_stopped(backend, sharing))
    working.add_done_callback(lambda _: told.set())
    await told.wait()
    bound = shutdown.exit_within()
    await shutdown.cancel([working], math.inf)
    with suppress(asyncio.CancelledError):
        working.result()
    log.info("worker.stopped")
    # DBOS threads sleep for up to a minute before they retry an unreachable database.
    shutdown.exit_in_order(bound)


async def _collect_until_stopped(backend: Backend, sharing: "type[LaneCollector] | None") -> None:
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


async def collect_now(
    backend: Backend, source_id: str, ref: str | None, show: ShowRun, clock: Clock = now
) -> RunRecord:
    """Collect one source now, for one entity or for all, and return the finished run.

    Joins a run of all entities that is under way, and leaves the work to the process that collects,
    if there is one. Raises InputError for an unknown source, and NotFoundError for an unknown
    entity or one that the source doesn't cover.
    """
    async with backend.opened() as database:
        integration = await _find_integration(backend, database, source_id)
        leadership = Leadership(database, process.holder(), "server", clock)
        collector = backend.collector(database, [integration], clock=leadership.clock)
        try:
            await leadership.held()
            run_id = await _begin_run(database, integration, ref, leadership.clock())
            while True:
                run = await runs.fetch_run(database, run_id)
                assert run is not None
                if run.finished_at is not None:
                    break
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


async def list_statuses(backend: Backend, clock: Clock = now) -> list[SourceStatus]:
    """List every collected source with its health."""
    async with backend.opened() as database:
        known = await runs.fetch_health(database)
        collected = (await backend.registry(database).current()).integrations
    at, sources = clock(), [one.source for one in collected.values()]
    found = [(source, known.get(source.id)) for source in sources]
    return [SourceStatus(*each, freshness.next_run_time(*each, at), at) for each in found]


async def find_detail(backend: Backend, id_: str, *, failed: bool) -> SourceDetail:
    """Read the details of a source; raises InputError for a source that isn't collected."""
    async with backend.opened() as database:
        source = (await _find_integration(backend, database, id_)).source
        return await read_source_detail(database, source, now(), failed=failed)


async def read_source_detail(
    database: Database, source: DataSource, now: int, *, failed: bool
) -> SourceDetail:
    """Read a source's details; `failed` adds up to `MOST_FAILED` entities, each with a reason."""
    found = await runs.fetch_source_health(database, source.id)
    last = found.last if found else None
    return SourceDetail(
        source,
        freshness.source_condition(source, found, now),
        last,
        await runs.list_gaps(database, last.id) if last else [],
        await _failed_entities(database, last) if last and failed else [],
    )


async def _failed_entities(database: Database, last: RunRecord) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    after: int | None = 0
    while after is not None and len(found) < MOST_FAILED:
        page = await store.page_failures(
            database, last.source_id, last.started_at, after, MOST_FAILED
        )
        found += [
            (one.ref, next(iter(one.reasons.values()), _KEPT_FOR_A_WHILE)) for one in page.failures
        ]
        after = page.more
    return found[:MOST_FAILED]


async def _find_integration(backend: Backend, database: Database, source_id: str) -> Integration:
    collected = (await backend.registry(database).current()).integrations
    found = collected.get(source_id)
    if found is None:
        known = ", ".join(collected) or "none"
        raise InputError(f'No source "{source_id}" is collected. Those that are: {known}.')
    return found


async def _begin_run(
    database: Database, integration: Integration, ref: str | None, now: int
) -> int:
    """Queue a run, or join the current one, and return its id."""
    source_id = integration.source.id
    entity_id = None
    if ref is not None:
        entity_id = await run_start.find_entity_id(
            database, str(refs.parse_ref(ref, kind="component"))
        )
    write = recorded_write(database, audit.make_run_entry(source_id, ref), now)
    try:
        return await run_start.begin_or_join_run(database, integration, now, entity_id, write)
    except NothingToCollectError:
        text = f"{source_id} is not about {ref}: its entityFilter says so."
        raise NotFoundError(text) from None
