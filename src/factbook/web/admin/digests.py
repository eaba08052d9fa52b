"""Administration → Digests: channels that are told what changed, and what became of it."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, cast

from factbook.auth.permissions import CATALOG_READ, CHECK_READ, OPERATIONS_MANAGE
from factbook.errors import ConflictError, InputError
from factbook.http import audit
from factbook.http.requests import Reply
from factbook.schemas.events import DigestForm, Weekday
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.formats import segment
from factbook.web.site.page_context import Form, PageContext
from factbook.webhooks import digests
from factbook.webhooks.digests import WEEKDAYS, DigestCadence, StoredDigest, WantedDigest

PATH: Final = "/administration/digests"
_ONE: Final = f"{PATH}/{{id}}"
_DAILY: Final = "daily"
_FORMS: Final[Mapping[str, str]] = {"slack": "Slack", "teams": "Microsoft Teams"}
_DAYS: Final = ((_DAILY, "Every day"), *((day, f"{day.capitalize()}s") for day in WEEKDAYS))
_HOURS: Final = tuple((str(hour), f"{hour:02}:00") for hour in range(24))
# What the form calls what messages name.
_LABELS: Final = {"url": "Address", "timeZone": "Time zone", "owner": "Group"}


class DigestFields(NamedTuple):
    """Fields of the form, but for the address, which no page shows."""

    owner: str = ""
    form: str = "slack"
    day: str = "monday"
    hour: str = "8"
    time_zone: str = "UTC"


async def listed(visit: PageContext, status: int = 200, problem: str = "") -> Reply:
    """Page of every digest, with the form of a new one."""
    return visit.page(
        "digests.html",
        status,
        digests=await digests.list_digests(visit.state.database),
        filled=_fields(visit.form) if visit.form else DigestFields(),
        problem=problem,
        path=PATH,
        forms=_FORMS,
        days=_DAYS,
        hours=_HOURS,
    )


async def create(visit: PageContext) -> Reply:
    """Create a digest."""
    state, write = visit.state, visit.writing(audit.digest_entry("digest.create"), 201)
    try:
        made = await digests.create_digest(
            state.database,
            state.post,
            state.token_key,
            _wanted(visit),
            actor=visit.person.ref,
            now=visit.now,
            write=write,
        )
    except (InputError, ConflictError) as error:
        return await listed(visit, error.status, _told(error))
    return visit.redirect(_path(made.id), "The digest is made. Send a test to see it arrive.")


async def show(visit: PageContext, status: int = 200, problem: str = "") -> Reply:
    """Page of one digest, with the form to change it."""
    found = await digests.get_digest(visit.state.database, _id(visit))
    given = visit.form if problem and visit.form and visit.form.one("form") else None
    return visit.page(
        "digest.html",
        status,
        digest=found,
        filled=_fields(given) if given else _of(found),
        problem=problem,
        path=PATH,
        here=_path(found.id),
        forms=_FORMS,
        days=_DAYS,
        hours=_HOURS,
    )


async def replace(visit: PageContext) -> Reply:
    """Change a digest; without an address it keeps the one that it has."""
    state, id_ = visit.state, _id(visit)
    write = visit.writing(audit.digest_entry("digest.replace"))
    try:
        await digests.change_digest(
            state.database,
            state.post,
            state.token_key,
            id_,
            _wanted(visit),
            now=visit.now,
            write=write,
        )
    except InputError as error:
        return await show(visit, error.status, _told(error))
    return visit.redirect(_path(id_), "The digest is saved.")


async def try_out(visit: PageContext) -> Reply:
    """Send what the next one would tell by now, and show the result."""
    state, id_ = visit.state, _id(visit)
    link = state.settings.public_url
    try:
        tried = await digests.send_test_digest(
            state.database, state.post, state.token_key, id_, visit.now, link
        )
    except ConflictError as error:
        return await show(visit, error.status, error.message)
    if tried.error is not None:
        return await show(visit, problem=f"The message was not delivered: {tried.error}.")
    notice = f"The channel answered {tried.status} after {tried.milliseconds} ms."
    return visit.redirect(_path(id_), notice)


async def delete(visit: PageContext) -> Reply:
    """Remove a digest."""
    await digests.delete_digest(
        _id(visit), write=visit.writing(audit.digest_entry("digest.delete"))
    )
    return visit.redirect(PATH, "The digest was deleted.")


def _wanted(visit: PageContext) -> WantedDigest:
    """The digest in the form; raises InputError."""
    form, sent = _fields(visit.sent), visit.sent.one("url")
    if form.form not in _FORMS or form.day not in dict(_DAYS) or form.hour not in dict(_HOURS):
        raise InputError("The form names something that is not offered.")
    cadence = (
        DigestCadence("daily", hour=int(form.hour), time_zone=form.time_zone)
        if form.day == _DAILY
        else DigestCadence("weekly", cast(Weekday, form.day), int(form.hour), form.time_zone)
    )
    return WantedDigest(form.owner or None, cast(DigestForm, form.form), cadence, sent or None)


def _fields(form: Form) -> DigestFields:
    return DigestFields(*(form.one(name) for name in DigestFields._fields))


def _of(found: StoredDigest) -> DigestFields:
    unit, day, hour, zone = found.cadence
    return DigestFields(
        found.owner, found.form, _DAILY if unit == "daily" else day, str(hour), zone
    )


def _told(error: InputError | ConflictError) -> str:
    """The problem, with the name that the form has for it."""
    name, colon, rest = error.message.partition(": ")
    return f"{_LABELS[name]}: {rest}" if colon and name in _LABELS else error.message


def _id(visit: PageContext) -> str:
    return visit.request.parameter("id")


def _path(id_: str) -> str:
    return f"{PATH}/{segment(id_)}"


_NEEDS: Final = (CATALOG_READ, CHECK_READ, OPERATIONS_MANAGE)
DIGESTS: Sequence[PageRoute] = (
    PageRoute("GET", PATH, listed, _NEEDS),
    PageRoute("POST", PATH, create, _NEEDS),
    PageRoute("GET", _ONE, show, _NEEDS),
    PageRoute("POST", _ONE, replace, _NEEDS),
    PageRoute("POST", f"{_ONE}/test", try_out, _NEEDS),
    PageRoute("POST", f"{_ONE}/delete", delete, _NEEDS),
)
