"""Commands on the database, without a server: tokens, people and the audit."""

import asyncio
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from types import MappingProxyType

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
from factbook.errors import InputError
from factbook.http import audit
from factbook.http.requests import render_welcome_link, require_address
from factbook.operations import erasure
from factbook.operations.erasure import ErasureReport
from factbook.scheduling import housekeeping
from factbook.scim import identity
from factbook.scim.identity import Confirmation, NewAccount
from factbook.storage import Database, Transaction, Write


def token_permissions(
    named: Collection[str], presets: Collection[str], *, everything: bool
) -> frozenset[str]:
    """The permissions of a new token; without any choice it reads. Raises InputError."""
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

    With `follow` it polls every `every` seconds until cancelled, and exports only records old
    enough that none can still precede them. Calls `warn` when the clock was set back. Raises
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
    """The link of a new invitation, and the role it gives.

    The role defaults to administrator when there are no people yet, who choose a name, and to
    viewer otherwise. Raises InputError when the address of the service or the name is missing, and
    ConflictError for a name that is somebody's, unless `confirmed` says that it is for that person.
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
        # Such a link ends with the first person, whoever becomes that.
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
    """Confirm that an account is the catalog's user of its name, and a SCIM user's.

    Raises the errors of `identity.confirm`.
    """
    ref, at, rules = _user_reference(name), now(), group_roles.make_group_rules(backend.settings)
    caller = Caller(COMMAND_LINE, at)
    async with backend.opened() as database:
        return await recorded_write(database, identity.audit_confirmation, at)(
            lambda tx: identity.confirm_account(tx, ref, rules, caller, user_name)
        )


async def add_person(backend: Backend, wish: NewAccount) -> Confirmation:
    """Create the account of somebody who signs in at the OpenID Connect provider.

    Raises InputError if the settings name no provider, and the errors of `identity.add`.
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
    """Erase the data of a person, if `agree` does not raise; without it, only count the records.

    Raises the errors of `erasure.preview`.
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
    """The link with which the person of this name sets another password.

    Raises NotFoundError for an unknown person, ConflictError for a disabled one, and InputError
    when the address of the service is not known.
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
    """Believe this machine's clock where it shows `today`, give or take a time zone.

    Returns the time up to which data was deleted before, in milliseconds since the epoch. Raises
    InputError when the clock shows another day.
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
    """Transaction runner that records each write in the audit as made on the command line."""
    return audit_trail.audit_writes(database, Caller(COMMAND_LINE, now), about)
