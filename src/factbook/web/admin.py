"""Administration → People, Audit and Status."""

import math
import re
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import groupby
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlencode

import msgspec
import structlog

from factbook import __version__
from factbook.audit.trail import (
    ACTIONS,
    AUDIT_CURSOR,
    COMMAND_LINE,
    LONGEST,
    About,
    AuditEntry,
    Caller,
    Record,
    page_audit,
    render_audit_cursor,
    split_audit_cursor,
    stream_audit_lines,
)
from factbook.auth import group_roles, invitations, permissions, sessions, tokens, users
from factbook.auth.invitations import Invitation
from factbook.auth.oauth import consents
from factbook.auth.permissions import AUDIT_READ, OPERATIONS_MANAGE, TITLES, TOKEN_MANAGE
from factbook.auth.users import Person
from factbook.catalog import people_trust
from factbook.catalog.people_trust import PeopleTrust
from factbook.checks.results import evaluator, state_store
from factbook.clock import DAY, SECOND, Clock
from factbook.errors import (
    ConflictError,
    FactbookError,
    InputError,
    NotFoundError,
    UnavailableError,
)
from factbook.http.pipeline import begin_pieces
from factbook.http.requests import Reply, render_welcome_link
from factbook.importers.records import count_waiting_hints
from factbook.observability.metrics import Metrics
from factbook.scheduling import housekeeping, lease, run_queue
from factbook.scim import identity
from factbook.scim.identity import NewAccount
from factbook.settings import Settings
from factbook.storage import Database, Transaction
from factbook.storage.database import limit_time
from factbook.storage.migrations import fetch_schema_version, find_pending_migrations
from factbook.web import formats
from factbook.web.pages import PageContext, PageRoute
from factbook.webhooks import store

log = structlog.get_logger("factbook.web")

T = TypeVar("T")

PEOPLE_PATH: Final = "/administration/people"
_PERSON_PATH: Final = f"{PEOPLE_PATH}/{{name}}"
_PEOPLE_ON_PAGE = 50
_MOST_SESSIONS = 20
_ROLES = [(role, title) for role, title in permissions.ROLE_TITLES.items()]


class PersonRow(NamedTuple):
    """A person and their number of tokens."""

    person: Person
    tokens: int


async def show_people(visit: PageContext, status: int = 200, problem: str = "") -> Reply:
    """Show all people and the open invitations."""
    database, after = visit.state.database, visit.query("after")
    found = await users.list_user_page(database, after, _PEOPLE_ON_PAGE + 1)
    shown = found[:_PEOPLE_ON_PAGE]
    counts = await tokens.count_tokens_by_owner(database, [person.ref for person in shown])
    return visit.page(
        "people.html",
        status,
        people=[PersonRow(person, counts.get(person.ref, 0)) for person in shown],
        first=PEOPLE_PATH if after else None,
        more=f"{PEOPLE_PATH}?after={shown[-1].ref}" if len(found) > _PEOPLE_ON_PAGE else None,
        invitations=await invitations.list_invitations(database, visit.now),
        roles=permissions.ROLE_TITLES,
        abouts=permissions.ROLE_DESCRIPTIONS,
        problem=problem,
        openid=visit.site.openid and visit.site.openid.options.title,
    )


async def submit_invitation(visit: PageContext) -> Reply:
    """Create an invitation, and show its link once, in this response."""
    role, secret, now = visit.sent.one("role"), invitations.generate_invitation_secret(), visit.now
    digest = invitations.hash_invitation_secret(secret, visit.state.token_key)
    name, confirmed = visit.sent.one("name"), visit.sent.one("confirmed") == "true"
    rules = group_roles.make_group_rules(visit.state.settings)

    def work(transaction: Transaction) -> Invitation:
        ref = users.make_user_ref(name)
        return invitations.create_invitation(
            transaction,
            digest=digest,
            role=role,
            made_by=visit.person.ref,
            now=now,
            lifetime=invitations.INVITATION_LIFETIME,
            new_ref=ref,
            scim_id=identity.check_invitation(transaction, ref, rules, confirmed=confirmed),
        )

    def about(made: Invitation) -> AuditEntry:
        detail = {"role": made.role, "person": made.new_ref or ""}
        return AuditEntry("person.invite", made.id, detail)

    try:
        made = await visit.writing(about, 201)(work)
    except (ConflictError, InputError) as error:
        return await show_people(visit, error.status, problem=error.message)
    return _show_link(visit, made, secret)


async def withdraw_unused_invitation(visit: PageContext) -> Reply:
    """Withdraw an unused invitation."""
    id_ = visit.sent.one("invitation")
    write = visit.writing(AuditEntry("person.withdraw", id_[:16]))
    try:
        await write(lambda transaction: invitations.withdraw_invitation(transaction, id_))
    except NotFoundError as error:
        return await show_people(visit, error.status, problem=error.message)
    return visit.redirect(PEOPLE_PATH, "The invitation is withdrawn; its link no longer works.")


async def show_person(visit: PageContext, status: int = 200, problem: str = "") -> Reply:
    """Show one person."""
    database, ref = visit.state.database, _get_person_ref(visit)
    person = await users.find_user(database, ref)
    if person is None:
        raise NotFoundError("There is no person with this name.")
    found = await sessions.list_sessions(database, ref)
    counts = await tokens.count_tokens_by_owner(database, [ref])
    values: dict[str, Any] = {
        "person": person,
        "path": f"{PEOPLE_PATH}/{person.name}",
        "tokens": counts.get(ref, 0),
        "sessions": found[:_MOST_SESSIONS],
        "session_count": len(found),
        "roles": _ROLES,
        "role": permissions.ROLE_TITLES[person.role],
        "permissions": [title for name, title in TITLES.items() if name in person.permissions],
        "problem": problem,
    }
    return visit.page("people-person.html", status, **values)


async def submit_confirmation(visit: PageContext) -> Reply:
    """Confirm that an account belongs to the catalog user of its name and to a SCIM user."""
    ref, user_name = _get_person_ref(visit), visit.sent.one("user_name")
    rules = group_roles.make_group_rules(visit.state.settings)
    caller = Caller(visit.person.ref, visit.now, visit.address, grant=visit.person.grant)

    return await _change_person(
        visit,
        identity.audit_confirmation,
        lambda transaction: identity.confirm_account(transaction, ref, rules, caller, user_name),
        f"{ref} is confirmed: the account has the groups of the catalog user with its name.",
    )


async def submit_new_person(visit: PageContext) -> Reply:
    """Create an account with a confirmed name for sign-in through the provider."""
    openid = visit.site.openid
    if openid is None:
        raise NotFoundError("No OpenID Connect provider is configured.")
    issuer = openid.options.issuer
    wish = NewAccount(visit.sent.one("new_name"), visit.sent.one("role"), visit.sent.one("subject"))
    rules = group_roles.make_group_rules(visit.state.settings)
    caller = Caller(visit.person.ref, visit.now, visit.address, grant=visit.person.grant)
    try:
        done = await visit.writing(identity.audit_confirmation)(
            lambda transaction: identity.add_account(transaction, wish, issuer, rules, caller)
        )
    except (ConflictError, InputError) as error:
        return await show_people(visit, error.status, problem=error.message)
    return visit.redirect(f"{PEOPLE_PATH}/{wish.name.lower()}", f"{done.ref} can sign in now.")


async def change_person_role(visit: PageContext) -> Reply:
    """Change a person's role."""
    ref, role, now = _get_person_ref(visit), visit.sent.one("role"), visit.now
    return await _change_person(
        visit,
        AuditEntry("person.change", ref, {"changed": "role", "role": role}),
        lambda transaction: users.change_user_role(transaction, ref, role, now),
        f"{ref} now has the role {permissions.ROLE_TITLES.get(role, role)}.",
    )


async def disable_person(visit: PageContext) -> Reply:
    """Disable a person."""
    ref, now = _get_person_ref(visit), visit.now
    return await _change_person(
        visit,
        AuditEntry("person.change", ref, {"changed": "disabled"}),
        lambda transaction: users.disable_user(transaction, ref, now),
        f"{ref} is disabled: their sessions and tokens no longer work.",
    )


async def enable_person(visit: PageContext) -> Reply:
    """Enable a person again."""
    ref = _get_person_ref(visit)
    return await _change_person(
        visit,
        AuditEntry("person.change", ref, {"changed": "enabled"}),
        lambda transaction: users.enable_user(transaction, ref),
        f"{ref} can sign in again. Tokens that were revoked stay revoked.",
    )


async def end_person_sessions(visit: PageContext) -> Reply:
    """End all sessions of a person, and revoke all their consents."""
    ref = _get_person_ref(visit)

    def work(transaction: Transaction) -> None:
        sessions.end_sessions_of(transaction, ref)
        consents.end_consents_of(transaction, ref)

    return await _change_person(
        visit,
        AuditEntry("session.end", ref, {"session": "all"}),
        work,
        f"{ref} is signed out everywhere.",
    )


async def reset_person_password(visit: PageContext) -> Reply:
    """Create a password reset link, and show it once, in this response."""
    ref, secret, now = _get_person_ref(visit), invitations.generate_invitation_secret(), visit.now
    digest, by = invitations.hash_invitation_secret(secret, visit.state.token_key), visit.person.ref
    entry = AuditEntry("person.change", ref, {"changed": "link to set a password"})
    try:
        made = await visit.writing(entry, 201)(
            lambda transaction: users.create_password_link(
                transaction, ref, digest=digest, made_by=by, now=now
            )
        )
    except (ConflictError, NotFoundError) as error:
        return await show_person(visit, error.status, problem=error.message)
    return _show_link(visit, made, secret)


async def _change_person(
    visit: PageContext, about: AuditEntry | About, work: Callable[[Transaction], T], notice: str
) -> Reply:
    """Change a person, then show the person page with a notice or the problem."""
    try:
        await visit.writing(about)(work)
    except (ConflictError, InputError, NotFoundError) as error:
        return await show_person(visit, error.status, problem=error.message)
    return visit.redirect(f"{PEOPLE_PATH}/{visit.request.parameter('name')}", notice)


def _get_person_ref(visit: PageContext) -> str:
    try:
        return users.make_user_ref(visit.request.parameter("name"))
    except InputError:
        raise NotFoundError("There is no person with this name.") from None


def _show_link(visit: PageContext, made: Invitation, secret: str) -> Reply:
    link = render_welcome_link(visit.server, secret)
    return visit.page(
        "people-link.html", 201, invitation=made, link=link, roles=permissions.ROLE_TITLES
    )


_PEOPLE_NEEDS: Final = (TOKEN_MANAGE,)
PEOPLE: Sequence[PageRoute] = (
    PageRoute("GET", PEOPLE_PATH, show_people, _PEOPLE_NEEDS),
    PageRoute("POST", f"{PEOPLE_PATH}/-/invitations", submit_invitation, _PEOPLE_NEEDS),
    PageRoute("POST", f"{PEOPLE_PATH}/-/withdraw", withdraw_unused_invitation, _PEOPLE_NEEDS),
    PageRoute("GET", _PERSON_PATH, show_person, _PEOPLE_NEEDS),
    PageRoute("POST", f"{PEOPLE_PATH}/-/accounts", submit_new_person, _PEOPLE_NEEDS),
    PageRoute("POST", f"{_PERSON_PATH}/confirm", submit_confirmation, _PEOPLE_NEEDS),
    PageRoute("POST", f"{_PERSON_PATH}/role", change_person_role, _PEOPLE_NEEDS),
    PageRoute("POST", f"{_PERSON_PATH}/password", reset_person_password, _PEOPLE_NEEDS),
    PageRoute("POST", f"{_PERSON_PATH}/disable", disable_person, _PEOPLE_NEEDS),
    PageRoute("POST", f"{_PERSON_PATH}/enable", enable_person, _PEOPLE_NEEDS),
    PageRoute("POST", f"{_PERSON_PATH}/sessions", end_person_sessions, _PEOPLE_NEEDS),
)


AUDIT_PATH: Final = "/administration/audit"
_RECORDS_ON_PAGE = 50
# Records read per page when equal records are folded.
_FOLDED = 250
_AUDIT_FILTERS = ("actor", "action", "object", "outcome", "from", "to")
_OUTCOMES = [("", "Any"), ("done", "Done"), ("refused", "Refused")]
# Actions on entity references; records for entities of the same kind count as equal.
_OF_ENTITIES = frozenset({"entity", "facts"})


class AuditRow(NamedTuple):
    """An audit row for display; `path` links to its object, if any.

    The row represents `number` equal records down to `oldest`; `unfolded` links to all of them.
    """

    record: Record
    title: str
    object: str
    path: str | None
    detail: dict[str, Any]
    number: int
    oldest: Record
    unfolded: str


class FoldedRecords(NamedTuple):
    """Consecutive equal records, newest first; `kind` is set if they have several objects."""

    records: list[Record]
    kind: str | None

    @property
    def newest(self) -> Record:
        return self.records[0]

    @property
    def oldest(self) -> Record:
        return self.records[-1]

    @property
    def things(self) -> int:
        """Number of distinct objects."""
        return len({record.object for record in self.records})


async def show_audit(visit: PageContext) -> Reply:
    """Show actions and refusals, newest first, with equal ones folded into one row."""
    given = {name: visit.query(name)[:LONGEST] for name in _AUDIT_FILTERS}
    is_folded = visit.query("fold") != "no"
    try:
        found, more = await _list_folded_records(visit, given, is_folded)
        problem, status = "", 200
    except InputError as error:
        found, more, problem, status = [], False, error.message, error.status
    except UnavailableError as error:
        found, more, status = [], False, error.status
        problem = f"{error.message} Choose a shorter time, an actor or an object."
    asked = {name: value for name, value in given.items() if value}
    shown = asked if is_folded else {**asked, "fold": "no"}
    return visit.page(
        "audit.html",
        status,
        rows=_make_audit_rows(visit, found, asked),
        first=_make_audit_address(shown) if visit.query("before") else None,
        more=_make_audit_address({**shown, "before": render_audit_cursor(found[-1].oldest)})
        if more
        else None,
        export=_make_audit_address(asked, f"{AUDIT_PATH}/export") if found else None,
        folding=_make_audit_address(asked) if not is_folded else None,
        given=given,
        filtered=bool(asked),
        actions=[("", "Any"), *ACTIONS.items()],
        outcomes=_OUTCOMES,
        problem=problem,
    )


async def download_audit(visit: PageContext) -> Reply:
    """Download the filtered audit as JSON lines, oldest first."""
    wanted = _make_audit_filter({name: visit.query(name)[:LONGEST] for name in _AUDIT_FILTERS})
    await visit.state.refusals.write()
    lines = stream_audit_lines(visit.state.database, **wanted)
    headers = {"content-disposition": 'attachment; filename="audit.jsonl"'}
    return Reply(await begin_pieces(lines), headers=headers, content_type=b"application/x-ndjson")


async def _list_folded_records(
    visit: PageContext, given: dict[str, str], is_folded: bool
) -> tuple[list[FoldedRecords], bool]:
    """Records for one page, and true if there are more."""
    wanted, before = _make_audit_filter(given), visit.query("before")
    if before and not re.fullmatch(AUDIT_CURSOR, before):
        raise InputError("The audit has no such page.")
    after = split_audit_cursor(before) if before else None
    # Flush buffered refusals to include them on the page.
    await visit.state.refusals.write()
    limit = _FOLDED if is_folded else _RECORDS_ON_PAGE
    records, more = await page_audit(visit.state.database, **wanted, after=after, limit=limit)
    found = (
        _fold_records(records)
        if is_folded
        else [FoldedRecords([record], None) for record in records]
    )
    return found[:_RECORDS_ON_PAGE], more or len(found) > _RECORDS_ON_PAGE


def _make_audit_filter(given: dict[str, str]) -> dict[str, Any]:
    """Convert the filters to query conditions; raises InputError for an invalid day."""
    until = _convert_day(given["to"])
    return {
        "actor": _find_actor(given["actor"]),
        "action": given["action"] or None,
        "object": given["object"] or None,
        "outcome": given["outcome"] or None,
        "since": _convert_day(given["from"]),
        "until": None if until is None else until + DAY - 1,
    }


def _find_actor(text: str) -> str | None:
    """Actor reference for a filter text; a plain name refers to a person."""
    if not text or ":" in text or text == COMMAND_LINE:
        return text or None
    try:
        return users.make_user_ref(text)
    except InputError:
        return text


def _convert_day(text: str) -> int | None:
    """Start of a UTC day in milliseconds; raises InputError for an invalid date."""
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise InputError("A date is written as 2026-01-31.") from None
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * SECOND


def _make_audit_address(query: dict[str, str], path: str = AUDIT_PATH) -> str:
    return f"{path}?{urlencode(query)}" if query else path


def _make_audit_rows(
    visit: PageContext, found: Sequence[FoldedRecords], asked: dict[str, str]
) -> list[AuditRow]:
    rows, before = [], visit.query("before")
    for each in found:
        place = {"before": before} if before else {}
        unfolded = _make_audit_address({**asked, "fold": "no", **place})
        rows.append(_make_audit_row(visit, each, unfolded))
        before = render_audit_cursor(each.oldest)
    return rows


def _make_audit_row(visit: PageContext, found: FoldedRecords, unfolded: str) -> AuditRow:
    record = found.newest
    title = ACTIONS.get(record.action, record.action)
    detail: dict[str, Any] = msgspec.json.decode(record.detail)
    more = {
        "action": record.action,
        "object": record.object,
        "status": record.status or None,
        "token": record.token or None,
        "grant": record.grant or None,
    }
    # Keep the recorded detail under its own key: its names can't hide the fields above.
    shown: dict[str, Any] = {name: value for name, value in more.items() if value is not None}
    shown = {**shown, **({"detail": detail} if detail else {})}
    several = found.kind and f"{found.things} of kind {found.kind}"
    if record.action.startswith("token."):  # token ids mean nothing to people
        name = str(detail.get("name", record.object))
    else:
        name = formats.shorten_ref(record.object)
    return AuditRow(
        record,
        title,
        several or name,
        None if several else _find_object_path(visit, record),
        shown,
        len(found.records),
        found.oldest,
        unfolded,
    )


def _find_object_path(visit: PageContext, record: Record) -> str | None:
    """Path of the object page; None if the object has no page or was deleted."""
    subject, _, verb = record.action.partition(".")
    name = record.object
    if verb == "delete" or not name:
        return None
    if subject == "set":
        return f"/sets/{formats.quote_segment(name)}"
    if subject == "entity":
        return formats.make_entity_path(name)
    if subject in {"data-source", "facts"}:
        return f"/data-sources/{formats.quote_segment(name)}"
    if visit.may(TOKEN_MANAGE) and name.startswith("user:default/"):
        return f"/administration/people/{formats.quote_segment(formats.get_ref_name(name))}"
    return None


def _fold_records(records: Iterable[Record]) -> list[FoldedRecords]:
    """Fold consecutive records with equal actor, address, credential, action, outcome, object."""

    def make_key(record: Record) -> tuple[str, ...]:
        person = (record.actor, record.address, record.token, record.grant)
        return (*person, record.action, record.outcome, _get_fold_object(record))

    folded = []
    for _, group in groupby(records, make_key):
        same = list(group)
        has_several = any(record.object != same[0].object for record in same)
        folded.append(FoldedRecords(same, _get_fold_object(same[0]) if has_several else None))
    return folded


def _get_fold_object(record: Record) -> str:
    """The entity kind for entity actions, otherwise the object."""
    kind, colon, _ = record.object.partition(":")
    is_entity = record.action.partition(".")[0] in _OF_ENTITIES and colon
    return kind if is_entity else record.object


AUDIT: Sequence[PageRoute] = (
    PageRoute("GET", AUDIT_PATH, show_audit, (AUDIT_READ,)),
    PageRoute("GET", f"{AUDIT_PATH}/export", download_audit, (AUDIT_READ,)),
)


STATUS_PATH: Final = "/status"


async def show_status(visit: PageContext) -> Reply:
    """Show the status; each unreadable part shows its error instead."""
    state = visit.state
    observed = Observed(state.database, state.metrics, state.clock, state.settings)
    parts = await read_status(observed)
    return visit.page("status.html", found=parts)


STATUS: Sequence[PageRoute] = (PageRoute("GET", STATUS_PATH, show_status, (OPERATIONS_MANAGE,)),)


# The status page reads everything anew, from indexes or small tables. Each part can fail alone.

# A part that takes longer is shown as unknown.
_MOST_SECONDS: Final = 2.0
_MEGABYTE: Final = 1_000_000


class StatusLine(NamedTuple):
    """A status line: a number or text, the time it refers to, and whether it is `bad`."""

    name: str
    value: int | str
    at: int | None = None
    bad: bool = False


class StatusPart(NamedTuple):
    """A part of the status; `unknown` says why it couldn't be read, and is empty otherwise."""

    title: str
    lines: list[StatusLine]
    unknown: str = ""


class Observed(NamedTuple):
    """The running process whose status is shown."""

    database: Database
    metrics: Metrics
    clock: Clock
    settings: Settings


async def read_status(observed: Observed) -> list[StatusPart]:
    """Read the parts of the status one by one, as a page should take only one connection."""
    return [await _read_part(title, reader, observed) for title, reader in _PARTS.items()]


async def _read_part(title: str, reader: "_Reader", observed: Observed) -> StatusPart:
    try:
        async with limit_time(_MOST_SECONDS):
            return StatusPart(title, [line async for line in reader(observed)])
    except FactbookError as error:
        return StatusPart(title, [], error.message)
    except Exception as error:
        # With a damaged schema, a driver's message may quote rows: it only goes to the log.
        log.exception("status.part_failed", part=title)
        return StatusPart(title, [], f"It could not be read: {type(error).__name__}, see the log.")


async def _process_status(observed: Observed) -> AsyncIterator[StatusLine]:
    yield StatusLine("Version", __version__)
    up = int((time.monotonic() - observed.metrics.begun) * SECOND)
    yield StatusLine("Started", "", observed.clock() - up)
    yield StatusLine("Writes that wait for their turn", observed.metrics.load.waiting)


async def _database_status(observed: Observed) -> AsyncIterator[StatusLine]:
    database = observed.database
    if database.dialect == "sqlite":
        yield StatusLine("Kind", f"SQLite {sqlite3.sqlite_version}")
    else:
        row = await database.one("SELECT current_setting('server_version')")
        yield StatusLine("Kind", f"PostgreSQL {row[0] if row else ''}")
    yield StatusLine("Newest migration", f"{await fetch_schema_version(database):04}")
    for name in await find_pending_migrations(database):
        yield StatusLine("Not applied", name, bad=True)
    row = await database.one(_SIZE[database.dialect])
    yield StatusLine("Size", f"{(row[0] if row else 0) / _MEGABYTE:,.1f} MB")
    if trouble := database.trouble():
        yield StatusLine("Writes", trouble, bad=True)
    reads = database.reads()
    yield StatusLine("Read connections in use", f"{reads.taken} of {reads.most}")
    yield StatusLine("Reads that wait for one", reads.waiting)


async def _replica_status(observed: Observed) -> AsyncIterator[StatusLine]:
    use = observed.database.replica()
    if use is None:
        yield StatusLine("Replica", "none is configured")
        return
    yield StatusLine("State", use.reason or "serves reads", bad=use.reason is not None)
    try:
        seconds = math.ceil(await use.lag() * 10) / 10
    except UnavailableError as error:
        yield StatusLine("Lag", f"unknown: {error.message}", bad=True)
    else:
        yield StatusLine("Lag", f"at most {seconds:,.1f} s" if seconds else "0 s")
    yield StatusLine("Reads it served", use.served)
    yield StatusLine("Reads the primary served instead", use.refused)


async def _queue_status(observed: Observed) -> AsyncIterator[StatusLine]:
    database, now = observed.database, observed.clock()
    batches = await run_queue.measure_backlog(database, now)
    yield StatusLine(
        "Batches of collection waiting, the oldest since", batches.waiting, batches.oldest_at
    )
    yield StatusLine("Batches of collection under way", batches.under_way)
    yield StatusLine("Batches of collection given up", batches.given_up, bad=batches.given_up > 0)
    hooks = await store.count_webhooks(database)
    yield StatusLine("Webhook retries", hooks.waiting)
    yield StatusLine("Messages of webhooks given up", hooks.given_up, bad=hooks.given_up > 0)
    yield StatusLine("Webhooks disabled", hooks.disabled, bad=hooks.disabled > 0)
    if hooks.oldest_at is not None:
        yield StatusLine("Oldest undelivered event", "", hooks.oldest_at)
    hints = await count_waiting_hints(database)
    yield StatusLine("Hints for importers waiting, the oldest since", *hints)


async def _check_status(observed: Observed) -> AsyncIterator[StatusLine]:
    database = observed.database
    settled = await evaluator.are_checks_settled(database)
    yield StatusLine("Publication of checks", "settled" if settled else "under way")
    settled = await evaluator.are_scorecards_settled(database)
    yield StatusLine("Grading of scorecards", "settled" if settled else "under way")
    late = await state_store.find_oldest_due(database, observed.clock())
    yield StatusLine("Oldest state that is due", "none" if late is None else "", late)


async def _housekeeping_status(observed: Observed) -> AsyncIterator[StatusLine]:
    found = await housekeeping.fetch_task_records(observed.database)
    for one in found:
        if one.failed_at is not None:
            yield StatusLine(one.part, f"failed: {one.error}", one.failed_at, bad=True)
        else:
            yield StatusLine(one.part, "succeeded", one.succeeded_at)
    if not found:
        yield StatusLine("Rounds", "none was done yet")
    clock = await housekeeping.read_retention_clock(observed.database)
    if clock.refused_at is not None:
        yield StatusLine("Clock", "not trusted: nothing is deleted", clock.refused_at, bad=True)


async def _right_status(observed: Observed) -> AsyncIterator[StatusLine]:
    settings = observed.settings
    trust = PeopleTrust.of(settings)
    lost = await people_trust.find_lost_rights(observed.database, trust, settings.annotation_domain)
    for one in lost:
        yield StatusLine(
            one.person,
            f"no rights from {', '.join(one.groups)}: only {one.place} lists the membership. "
            f"To trust it: {one.remedy}",
            bad=settings.people_sets is None,
        )
    if not lost:
        yield StatusLine("Missing", "none")


async def _worker_status(observed: Observed) -> AsyncIterator[StatusLine]:
    found = await lease.list_lease_holders(
        observed.database, ("collector", "housekeeping"), "worker %"
    )
    now = await lease.fetch_shared_time(observed.database, observed.clock)
    for name, holder, held_until in found:
        lapsed = held_until <= now
        yield StatusLine(
            _DUTIES.get(name, "Worker"),
            f"{holder}, {'lapsed' if lapsed else 'held until'}",
            held_until,
            bad=lapsed,
        )
    if not found:
        yield StatusLine("Processes", "none works beside requests yet")


_Reader = Callable[[Observed], AsyncIterator[StatusLine]]
_DUTIES: Final[Mapping[str, str]] = {"collector": "Collection", "housekeeping": "Housekeeping"}
_PARTS: Final[Mapping[str, _Reader]] = {
    "Process": _process_status,
    "Database": _database_status,
    "Read replica": _replica_status,
    "Queues": _queue_status,
    "Checks": _check_status,
    "Housekeeping": _housekeeping_status,
    "Workers": _worker_status,
    "Rights of groups": _right_status,
}
_SIZE: Final[Mapping[str, str]] = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "postgresql": "SELECT pg_database_size(current_database())",
}
