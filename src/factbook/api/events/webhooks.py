"""Webhooks over HTTP; a secret is given once, when its webhook is made."""

from typing import Any, Final

from factbook import webhooks
from factbook.api.openapi.parameter_types import PathPart
from factbook.clock import iso
from factbook.http import audit
from factbook.http.context import WebhookContext
from factbook.http.requests import Reply, Request, reply
from factbook.schemas.events import NewWebhook
from factbook.webhooks import GivenUp, StoredWebhook

_LARGEST: Final = 16 * 1024

ID: Final = PathPart(name="id", description="The webhook's id.", format="webhook-id")


async def list_all(request: Request, state: WebhookContext) -> Reply:
    """Every webhook, without its secret, and of its address the scheme and host alone."""
    found = await webhooks.listed(state.database)
    return reply({"webhooks": [_render(one) for one in found]})


async def get(request: Request, state: WebhookContext) -> Reply:
    """A webhook, and what could not be delivered to it."""
    found, lost = await webhooks.one(state.database, ID.of(request))
    return reply({**_render(found), "undelivered": [_undelivered(one) for one in lost]})


async def create(request: Request, state: WebhookContext) -> Reply:
    """Send every event from now on to an address.

    The secret and the whole address are in this answer and never again.

    The address is public, or in a network that the setting `outgoing_networks` names.
    """
    given: NewWebhook = await request.json(NewWebhook, _LARGEST)
    made = await webhooks.create(
        state.database,
        state.post,
        state.token_key,
        given.url,
        given.types,
        actor=request.actor,
        now=state.clock(),
        write=audit.writing(request, state, audit.of_webhook("webhook.create"), 201),
    )
    return reply({**_render(made.webhook), "url": made.url, "secret": made.secret}, 201)


async def delete(request: Request, state: WebhookContext) -> Reply:
    """Remove a webhook, and what waits to be sent to it."""
    write = audit.writing(request, state, audit.of_webhook("webhook.delete"), 204)
    await webhooks.remove(ID.of(request), write=write)
    return Reply(status=204)


async def enable(request: Request, state: WebhookContext) -> Reply:
    """Send to a webhook again, beginning with what could not be delivered."""
    write = audit.writing(request, state, audit.of_webhook("webhook.enable"))
    return reply(_render(await webhooks.enable(ID.of(request), now=state.clock(), write=write)))


async def test(request: Request, state: WebhookContext) -> Reply:
    """Send a message of the type `webhook.test` now, once, and say what came of it."""
    tried = await webhooks.try_out(
        state.database, state.post, state.token_key, ID.of(request), state.clock()
    )
    return reply({"delivered": tried.error is None, **tried._asdict()})


def _render(shown: StoredWebhook) -> dict[str, Any]:
    return {
        "id": shown.id,
        "url": shown.url,
        "types": shown.types,
        "createdAt": iso(shown.created_at),
        "createdBy": shown.created_by,
        "lastSuccessAt": _time(shown.succeeded_at),
        "lastFailureAt": _time(shown.failed_at),
        "lastError": shown.error,
        "disabledAt": _time(shown.disabled_at),
        "waiting": shown.waiting,
        "givenUp": shown.given_up,
    }


def _undelivered(lost: GivenUp) -> dict[str, Any]:
    return {
        "eventId": lost.event_id,
        "type": lost.type,
        "firstAt": iso(lost.first_at),
        "attempts": lost.attempts,
        "error": lost.error,
    }


def _time(value: int | None) -> str | None:
    return None if value is None else iso(value)
