"""Administration → Connections, Webhooks and Digests: the hosts that this service calls.

Header values are write-only: pages never show them again, not even next to a validation error.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, Self, cast, get_args

from factbook.auth.permissions import (
    CATALOG_READ,
    CHECK_READ,
    EVENTS_READ,
    OPERATIONS_MANAGE,
    SOURCE_WRITE,
)
from factbook.datasources import define
from factbook.datasources.define import ConnectionDetail
from factbook.datasources.stores import ConnectionInput
from factbook.errors import ConflictError, InputError, InvalidItemsError, problem
from factbook.events.store import TYPES, EventType
from factbook.http import audit
from factbook.http.requests import Reply
from factbook.schemas.events import DigestForm, Weekday
from factbook.web.formats import quote_segment
from factbook.web.pages import Form, PageContext, PageRoute
from factbook.webhooks import digests, sender, store
from factbook.webhooks.digests import WEEKDAYS, DigestCadence, WantedDigest

CONNECTIONS_PATH: Final = "/administration/connections"
_CONNECTION_PATH: Final = f"{CONNECTIONS_PATH}/{{name}}"
# Empty rows for new headers.
_EMPTY_ROWS: Final = 3
_MOST_ROWS: Final = 40
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)


class HeaderRow(NamedTuple):
    """A header row: name, submitted value, and whether to remove the header."""

    name: str
    value: str = ""
    remove: bool = False


@dataclass(frozen=True, kw_only=True)
class ConnectionForm:
    """Field values of the connection form."""

    name: str = ""
    base_url: str = ""
    methods: tuple[str, ...] = ("GET",)
    at_once: str = "4"
    shared_with: str = ""
    rows: Sequence[HeaderRow] = field(default=(), repr=False)

    @classmethod
    def new(cls) -> Self:
        """Empty form for a new connection."""
        return cls(rows=_pad_rows([HeaderRow("authorization")]))

    @classmethod
    def shown(cls, connection: ConnectionDetail) -> Self:
        """Form for an existing connection, without header values."""
        return cls(
            name=connection.name,
            base_url=connection.base_url,
            methods=connection.methods,
            at_once=str(connection.at_once),
            shared_with="\n".join(connection.shared_with),
            rows=_pad_rows([HeaderRow(name) for name in connection.headers]),
        )

    @classmethod
    def of(cls, sent: Form, name: str | None = None) -> Self:
        """The submitted form; `name` replaces the submitted name."""
        rows = [
            HeaderRow(
                sent.one(f"header-{number}"),
                sent.one(f"value-{number}"),
                sent.one(f"remove-{number}") == "yes",
            )
            for number in range(_MOST_ROWS)
        ]
        return cls(
            name=sent.one("name") if name is None else name,
            base_url=sent.one("base_url"),
            methods=tuple(sent.all("methods")),
            at_once=sent.one("at_once"),
            shared_with=sent.one("shared_with"),
            rows=[row for row in rows if row.name or row.value],
        )

    def problems(self) -> list[dict[str, str]]:
        """List the problems of the form, without quoting values."""
        found = []
        if not (self.at_once.isascii() and self.at_once.isdigit() and len(self.at_once) <= 3):
            found.append(problem("atOnce", "has to be a whole number from 1 to 100"))
        if not self.methods:
            found.append(problem("methods", "has to be GET, POST or both"))
        names = [row.name.lower() for row in self.rows if not row.remove]
        if "" in names:
            found.append(problem("headers", "has a value without a name"))
        for name in sorted({name for name in names if name and names.count(name) > 1}):
            what = f"headers.{name}" if _HEADER_NAME.fullmatch(name) else "headers"
            found.append(problem(what, "is given twice"))
        return found

    def wanted(self) -> ConnectionInput:
        """Convert the form to a connection; an empty header value keeps the stored value."""
        return ConnectionInput(
            base_url=self.base_url,
            methods=self.methods,
            at_once=int(self.at_once),
            headers={row.name: row.value or None for row in self.rows if not row.remove},
            shared_with=tuple(filter(None, map(str.strip, self.shared_with.splitlines()))),
        )

    def without_values(self) -> Self:
        """Copy of the form without possible secrets, to show again."""
        rows = [
            HeaderRow(row.name if _HEADER_NAME.fullmatch(row.name) else "", "", row.remove)
            for row in self.rows
        ]
        is_safe = "@" not in self.base_url and "?" not in self.base_url
        shown = _pad_rows([row for row in rows if row.name])
        return replace(self, rows=shown, base_url=self.base_url if is_safe else "")


async def show_connections(visit: PageContext, status: int = 200, problem: str = "") -> Reply:
    """Show all connections, from the settings and from the database."""
    found = await define.list_connections(visit.state.database, visit.state.registry)
    return visit.page(
        "connections.html", status, connections=found, problem=problem, path=CONNECTIONS_PATH
    )


async def begin_connection(visit: PageContext) -> Reply:
    """Show the form for a new connection."""
    return _show_connection_form(visit, None, ConnectionForm.new())


async def create_connection(visit: PageContext) -> Reply:
    """Create a connection."""
    form = ConnectionForm.of(visit.sent)
    taken = {
        one.name
        for one in await define.list_connections(visit.state.database, visit.state.registry)
    }
    if form.name in taken:
        message = "is already the name of a connection"
        return _show_connection_form(visit, None, form, 409, [problem("name", message)])
    return await _put_connection(visit, None, form)


async def edit_connection(visit: PageContext) -> Reply:
    """Show the form for an existing connection."""
    found = await _find_editable_connection(visit)
    return _show_connection_form(visit, found, ConnectionForm.shown(found))


async def replace_connection(visit: PageContext) -> Reply:
    """Change a connection; headers without a new value keep theirs."""
    found = await _find_editable_connection(visit)
    return await _put_connection(visit, found, ConnectionForm.of(visit.sent, found.name))


async def submit_connection_delete(visit: PageContext) -> Reply:
    """Delete an unused connection."""
    state, name = visit.state, visit.request.parameter("name")
    write = visit.writing(audit.make_connection_entry(deleted=True))
    try:
        await define.delete_connection(state.registry, name, actor=visit.person.ref, write=write)
    except ConflictError as error:
        return await show_connections(visit, error.status, error.message)
    return visit.redirect(CONNECTIONS_PATH, f"The connection {name} was deleted.")


async def _put_connection(
    visit: PageContext, found: ConnectionDetail | None, form: ConnectionForm
) -> Reply:
    state = visit.state
    if problems := form.problems():
        return _show_connection_form(visit, found, form, 400, problems)
    try:
        await define.change_connection(
            state.database,
            state.registry,
            state.token_key,
            form.name,
            form.wanted(),
            actor=visit.person.ref,
            now=visit.now,
            write=visit.writing(audit.make_connection_entry()),
        )
    except (InvalidItemsError, ConflictError) as error:
        return _show_connection_form(visit, found, form, error.status, error.problem_list)
    done = "made" if found is None else "changed"
    return visit.redirect(CONNECTIONS_PATH, f"The connection {form.name} was {done}.")


async def _find_editable_connection(visit: PageContext) -> ConnectionDetail:
    """Find the connection in the URL; NotFoundError, or ConflictError if from the settings."""
    state, name = visit.state, visit.request.parameter("name")
    found = await define.find_connection(state.database, state.registry, name)
    if found.stored is None:
        raise ConflictError(f"The connection {name} comes from the settings: change it there.")
    return found


def _show_connection_form(
    visit: PageContext,
    found: ConnectionDetail | None,
    form: ConnectionForm,
    status: int = 200,
    problems: Sequence[dict[str, str]] = (),
) -> Reply:
    labeled = []
    for each in problems:
        option, _, header = each["path"].partition(".")
        path = f"{_OPTION_LABELS.get(option, option)} {header}".strip()
        labeled.append({"path": path, "message": each["message"]})
    return visit.page(
        "connections-edit.html",
        status,
        connection=found,
        form=form.without_values(),
        set_at=found.headers if found else {},
        problems=labeled,
        action=f"{CONNECTIONS_PATH}/new"
        if found is None
        else f"{CONNECTIONS_PATH}/{quote_segment(found.name)}/edit",
        path=CONNECTIONS_PATH,
    )


def _pad_rows(rows: list[HeaderRow]) -> list[HeaderRow]:
    return [*rows, *[HeaderRow("")] * _EMPTY_ROWS][:_MOST_ROWS]


_OPTION_LABELS: Final = {
    "name": "Name",
    "baseUrl": "Address",
    "methods": "Methods",
    "atOnce": "Requests at once",
    "sharedWith": "Owners",
    "headers": "Header",
}

CONNECTIONS: Sequence[PageRoute] = (
    PageRoute("GET", CONNECTIONS_PATH, show_connections, (SOURCE_WRITE,)),
    PageRoute("GET", f"{CONNECTIONS_PATH}/new", begin_connection, (SOURCE_WRITE,)),
    PageRoute("POST", f"{CONNECTIONS_PATH}/new", create_connection, (SOURCE_WRITE,)),
    PageRoute("GET", f"{_CONNECTION_PATH}/edit", edit_connection, (SOURCE_WRITE,)),
    PageRoute("POST", f"{_CONNECTION_PATH}/edit", replace_connection, (SOURCE_WRITE,)),
    PageRoute("POST", f"{_CONNECTION_PATH}/delete", submit_connection_delete, (SOURCE_WRITE,)),
)


WEBHOOKS_PATH: Final = "/administration/webhooks"
_WEBHOOK_PATH: Final = f"{WEBHOOKS_PATH}/{{id}}"
_EVENT_TYPES: Final[Sequence[EventType]] = get_args(EventType)


async def show_webhooks(visit: PageContext, status: int = 200, problem: str = "") -> Reply:
    """Show all webhooks, with a form for a new webhook."""
    form = visit.form
    return visit.page(
        "webhooks.html",
        status,
        webhooks=await store.list_webhooks(visit.state.database),
        types=[(type_, TYPES[type_][1]) for type_ in _EVENT_TYPES],
        url=form.one("url") if form else "",
        chosen=form.all("types") if form else [],
        problem=problem,
        path=WEBHOOKS_PATH,
    )


async def submit_new_webhook(visit: PageContext) -> Reply:
    """Create a webhook, and show its secret once, in this response."""
    state, url = visit.state, visit.sent.one("url")
    write = visit.writing(audit.make_webhook_entry("webhook.create"), 201)
    named = visit.sent.all("types")
    try:
        if not set(named) <= set(_EVENT_TYPES):
            raise InputError("There is no such event type.")
        made = await sender.create_webhook(
            state.database,
            state.post,
            state.token_key,
            url,
            [type_ for type_ in _EVENT_TYPES if type_ in named],
            actor=visit.person.ref,
            now=visit.now,
            write=write,
        )
    except (InputError, ConflictError) as error:
        return await show_webhooks(visit, error.status, error.message.removeprefix("url: "))
    return visit.page("webhooks-made.html", 201, made=made, path=WEBHOOKS_PATH)


async def show_webhook(visit: PageContext, status: int = 200, problem: str = "") -> Reply:
    """Show one webhook with its undelivered messages."""
    hook, lost = await sender.get_webhook_detail(visit.state.database, _get_id(visit))
    return visit.page(
        "webhook.html",
        status,
        hook=hook,
        lost=lost,
        problem=problem,
        path=WEBHOOKS_PATH,
        here=_make_webhook_path(hook.id),
    )


async def submit_webhook_test(visit: PageContext) -> Reply:
    """Send a test message and show the result."""
    state, id_ = visit.state, _get_id(visit)
    try:
        tried = await sender.send_test_message(
            state.database, state.post, state.token_key, id_, visit.now
        )
    except ConflictError as error:
        return await show_webhook(visit, error.status, error.message)
    if tried.error is not None:
        return await show_webhook(visit, problem=f"The message was not delivered: {tried.error}.")
    notice = f"The receiver answered {tried.status} after {tried.milliseconds} ms."
    return visit.redirect(_make_webhook_path(id_), notice)


async def submit_webhook_enable(visit: PageContext) -> Reply:
    """Enable a webhook again, and resend abandoned messages."""
    write = visit.writing(audit.make_webhook_entry("webhook.enable"))
    await sender.enable_webhook(_get_id(visit), now=visit.now, write=write)
    return visit.redirect(_make_webhook_path(_get_id(visit)), "The webhook is enabled.")


async def submit_webhook_delete(visit: PageContext) -> Reply:
    """Delete a webhook and its pending messages."""
    await sender.delete_webhook(
        _get_id(visit), write=visit.writing(audit.make_webhook_entry("webhook.delete"))
    )
    return visit.redirect(WEBHOOKS_PATH, "The webhook was deleted.")


def _get_id(visit: PageContext) -> str:
    return visit.request.parameter("id")


def _make_webhook_path(id_: str) -> str:
    return f"{WEBHOOKS_PATH}/{quote_segment(id_)}"


_WEBHOOK_NEEDS: Final = (EVENTS_READ, OPERATIONS_MANAGE)
WEBHOOKS: Sequence[PageRoute] = (
    PageRoute("GET", WEBHOOKS_PATH, show_webhooks, _WEBHOOK_NEEDS),
    PageRoute("POST", WEBHOOKS_PATH, submit_new_webhook, _WEBHOOK_NEEDS),
    PageRoute("GET", _WEBHOOK_PATH, show_webhook, _WEBHOOK_NEEDS),
    PageRoute("POST", f"{_WEBHOOK_PATH}/test", submit_webhook_test, _WEBHOOK_NEEDS),
    PageRoute("POST", f"{_WEBHOOK_PATH}/enable", submit_webhook_enable, _WEBHOOK_NEEDS),
    PageRoute("POST", f"{_WEBHOOK_PATH}/delete", submit_webhook_delete, _WEBHOOK_NEEDS),
)


DIGESTS_PATH: Final = "/administration/digests"
_DIGEST_PATH: Final = f"{DIGESTS_PATH}/{{id}}"
_DAILY: Final = "daily"
_DIGEST_FORMS: Final[Mapping[str, str]] = {"slack": "Slack", "teams": "Microsoft Teams"}
_DIGEST_DAYS: Final = ((_DAILY, "Every day"), *((day, f"{day.capitalize()}s") for day in WEEKDAYS))
_DIGEST_HOURS: Final = tuple((str(hour), f"{hour:02}:00") for hour in range(24))
# Form labels for the field names in error messages.
_DIGEST_LABELS: Final = {"url": "Address", "timeZone": "Time zone", "owner": "Group"}


class DigestFields(NamedTuple):
    """Fields of the digest form, except the URL, which pages never show."""

    owner: str = ""
    form: str = "slack"
    day: str = "monday"
    hour: str = "8"
    time_zone: str = "UTC"


async def show_digests(visit: PageContext, status: int = 200, problem: str = "") -> Reply:
    """Show all digests, with a form for a new digest."""
    return visit.page(
        "digests.html",
        status,
        digests=await digests.list_digests(visit.state.database),
        filled=_get_digest_fields(visit.form) if visit.form else DigestFields(),
        problem=problem,
        path=DIGESTS_PATH,
        forms=_DIGEST_FORMS,
        days=_DIGEST_DAYS,
        hours=_DIGEST_HOURS,
    )


async def submit_new_digest(visit: PageContext) -> Reply:
    """Create a digest."""
    state, write = visit.state, visit.writing(audit.make_digest_entry("digest.create"), 201)
    try:
        made = await digests.create_digest(
            state.database,
            state.post,
            state.token_key,
            _make_digest_request(visit),
            actor=visit.person.ref,
            now=visit.now,
            write=write,
        )
    except (InputError, ConflictError) as error:
        return await show_digests(visit, error.status, _label_problem(error))
    return visit.redirect(
        _make_digest_path(made.id), "The digest was created. Send a test message to see it arrive."
    )


async def show_digest(visit: PageContext, status: int = 200, problem: str = "") -> Reply:
    """Show one digest, with a form to change it."""
    found = await digests.get_digest(visit.state.database, _get_id(visit))
    if problem and visit.form and visit.form.one("form"):
        fields = _get_digest_fields(visit.form)
    else:
        unit, day, hour, zone = found.cadence
        rhythm = _DAILY if unit == "daily" else day
        fields = DigestFields(found.owner, found.form, rhythm, str(hour), zone)
    return visit.page(
        "digest.html",
        status,
        digest=found,
        filled=fields,
        problem=problem,
        path=DIGESTS_PATH,
        here=_make_digest_path(found.id),
        forms=_DIGEST_FORMS,
        days=_DIGEST_DAYS,
        hours=_DIGEST_HOURS,
    )


async def save_digest(visit: PageContext) -> Reply:
    """Change a digest; an empty URL keeps the stored URL."""
    state, id_ = visit.state, _get_id(visit)
    write = visit.writing(audit.make_digest_entry("digest.replace"))
    try:
        await digests.change_digest(
            state.database,
            state.post,
            state.token_key,
            id_,
            _make_digest_request(visit),
            now=visit.now,
            write=write,
        )
    except InputError as error:
        return await show_digest(visit, error.status, _label_problem(error))
    return visit.redirect(_make_digest_path(id_), "The digest was saved.")


async def submit_digest_test(visit: PageContext) -> Reply:
    """Send a test digest with the current content, and show the result."""
    state, id_ = visit.state, _get_id(visit)
    link = state.settings.public_url
    try:
        tried = await digests.send_test_digest(
            state.database, state.post, state.token_key, id_, visit.now, link
        )
    except ConflictError as error:
        return await show_digest(visit, error.status, error.message)
    if tried.error is not None:
        return await show_digest(visit, problem=f"The message was not delivered: {tried.error}.")
    notice = f"The channel answered {tried.status} after {tried.milliseconds} ms."
    return visit.redirect(_make_digest_path(id_), notice)


async def submit_digest_delete(visit: PageContext) -> Reply:
    """Delete a digest."""
    await digests.delete_digest(
        _get_id(visit), write=visit.writing(audit.make_digest_entry("digest.delete"))
    )
    return visit.redirect(DIGESTS_PATH, "The digest was deleted.")


def _make_digest_request(visit: PageContext) -> WantedDigest:
    """Parse the digest form; raises InputError."""
    form, sent = _get_digest_fields(visit.sent), visit.sent.one("url")
    if (
        form.form not in _DIGEST_FORMS
        or form.day not in dict(_DIGEST_DAYS)
        or form.hour not in dict(_DIGEST_HOURS)
    ):
        raise InputError("The form has a value that is not offered.")
    cadence = (
        DigestCadence("daily", hour=int(form.hour), time_zone=form.time_zone)
        if form.day == _DAILY
        else DigestCadence("weekly", cast(Weekday, form.day), int(form.hour), form.time_zone)
    )
    return WantedDigest(form.owner or None, cast(DigestForm, form.form), cadence, sent or None)


def _get_digest_fields(form: Form) -> DigestFields:
    return DigestFields(*(form.one(name) for name in DigestFields._fields))


def _label_problem(error: InputError | ConflictError) -> str:
    """The error message, with the form label instead of the field name."""
    name, colon, rest = error.message.partition(": ")
    return f"{_DIGEST_LABELS[name]}: {rest}" if colon and name in _DIGEST_LABELS else error.message


def _make_digest_path(id_: str) -> str:
    return f"{DIGESTS_PATH}/{quote_segment(id_)}"


_DIGEST_NEEDS: Final = (CATALOG_READ, CHECK_READ, OPERATIONS_MANAGE)
DIGESTS: Sequence[PageRoute] = (
    PageRoute("GET", DIGESTS_PATH, show_digests, _DIGEST_NEEDS),
    PageRoute("POST", DIGESTS_PATH, submit_new_digest, _DIGEST_NEEDS),
    PageRoute("GET", _DIGEST_PATH, show_digest, _DIGEST_NEEDS),
    PageRoute("POST", _DIGEST_PATH, save_digest, _DIGEST_NEEDS),
    PageRoute("POST", f"{_DIGEST_PATH}/test", submit_digest_test, _DIGEST_NEEDS),
    PageRoute("POST", f"{_DIGEST_PATH}/delete", submit_digest_delete, _DIGEST_NEEDS),
)
