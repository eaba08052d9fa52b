"""Administration → Webhooks: receivers of events, and undelivered messages."""

from collections.abc import Sequence
from typing import Final, get_args

from factbook.auth.permissions import EVENTS_READ, OPERATIONS_MANAGE
from factbook.errors import ConflictError, InputError
from factbook.events.event import TYPES, EventType
from factbook.http import audit
from factbook.http.requests import Reply
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.formats import segment
from factbook.web.site.page_context import PageContext
from factbook.webhooks import sender, store

PATH: Final = "/administration/webhooks"
_ONE: Final = f"{PATH}/{{id}}"
_TYPES: Final[Sequence[EventType]] = get_args(EventType)


async def listed(visit: PageContext, status: int = 200, problem: str = "") -> Reply:
    """Page of every webhook, with the form of a new one."""
    form = visit.form
    return visit.page(
        "webhooks.html",
        status,
        webhooks=await store.list_webhooks(visit.state.database),
        types=[(type_, TYPES[type_][1]) for type_ in _TYPES],
        url=form.one("url") if form else "",
        chosen=form.all("types") if form else [],
        problem=problem,
        path=PATH,
    )


async def create(visit: PageContext) -> Reply:
    """Create a webhook, whose secret is in this answer alone."""
    state, url = visit.state, visit.sent.one("url")
    write = visit.writing(audit.webhook_entry("webhook.create"), 201)
    try:
        made = await sender.create_webhook(
            state.database,
            state.post,
            state.token_key,
            url,
            _chosen(visit),
            actor=visit.person.ref,
            now=visit.now,
            write=write,
        )
    except (InputError, ConflictError) as error:
        return await listed(visit, error.status, error.message.removeprefix("url: "))
    return visit.page("webhooks-made.html", 201, made=made, path=PATH)


async def show(visit: PageContext, status: int = 200, problem: str = "") -> Reply:
    """Page of one webhook, with its undelivered messages."""
    hook, lost = await sender.get_webhook_detail(visit.state.database, _id(visit))
    return visit.page(
        "webhook.html",
        status,
        hook=hook,
        lost=lost,
        problem=problem,
        path=PATH,
        here=_path(hook.id),
    )


async def try_out(visit: PageContext) -> Reply:
    """Send a test message and show the result."""
    state, id_ = visit.state, _id(visit)
    try:
        tried = await sender.send_test_message(
            state.database, state.post, state.token_key, id_, visit.now
        )
    except ConflictError as error:
        return await show(visit, error.status, error.message)
    if tried.error is not None:
        return await show(visit, problem=f"The message was not delivered: {tried.error}.")
    notice = f"The receiver answered {tried.status} after {tried.milliseconds} ms."
    return visit.redirect(_path(id_), notice)


async def enable(visit: PageContext) -> Reply:
    """Enable a webhook again, and resend given-up messages."""
    write = visit.writing(audit.webhook_entry("webhook.enable"))
    await sender.enable_webhook(_id(visit), now=visit.now, write=write)
    return visit.redirect(_path(_id(visit)), "The webhook is enabled.")


async def delete(visit: PageContext) -> Reply:
    """Remove a webhook and its pending messages."""
    await sender.delete_webhook(
        _id(visit), write=visit.writing(audit.webhook_entry("webhook.delete"))
    )
    return visit.redirect(PATH, "The webhook was deleted.")


def _chosen(visit: PageContext) -> list[EventType]:
    """Selected event types; raises InputError."""
    named = visit.sent.all("types")
    if not set(named) <= set(_TYPES):
        raise InputError("There is no such event type.")
    return [type_ for type_ in _TYPES if type_ in named]


def _id(visit: PageContext) -> str:
    return visit.request.parameter("id")


def _path(id_: str) -> str:
    return f"{PATH}/{segment(id_)}"


_NEEDS: Final = (EVENTS_READ, OPERATIONS_MANAGE)
WEBHOOKS: Sequence[PageRoute] = (
    PageRoute("GET", PATH, listed, _NEEDS),
    PageRoute("POST", PATH, create, _NEEDS),
    PageRoute("GET", _ONE, show, _NEEDS),
    PageRoute("POST", f"{_ONE}/test", try_out, _NEEDS),
    PageRoute("POST", f"{_ONE}/enable", enable, _NEEDS),
    PageRoute("POST", f"{_ONE}/delete", delete, _NEEDS),
)
