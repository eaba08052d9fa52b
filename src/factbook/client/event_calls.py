"""The client's requests to the feed of events and to webhooks."""

from collections.abc import Sequence
from functools import partial

from factbook.client.answers import WebhookAnswer, WebhookAnswers
from factbook.client.calls import TIMEOUT, Call, get, parameters, segment, send
from factbook.client.responses import decode, nothing
from factbook.schemas.events import Events, TriedWebhook

_EVENTS = "/api/events"
_WEBHOOKS = f"{_EVENTS}/webhooks"


def events(
    *,
    after: str | None = None,
    types: Sequence[str] = (),
    set: str | None = None,
    source: str | None = None,
    entity: str | None = None,
    limit: int | None = None,
    wait: int | None = None,
) -> Call[Events]:
    """A page of what changed: from the oldest event that is kept, or behind the cursor `after`.

    `after="now"` begins with what comes next; `wait` holds the answer back for up to so many
    seconds, 30 at most, until something does. Raises ApiError (410) for a cursor of events that
    are not kept any more.
    """
    return Call(
        method="GET",
        path=_EVENTS,
        read=partial(decode, Events),
        params=parameters(
            after=after,
            type=list(types),
            set=set,
            source=source,
            entity=entity,
            limit=limit,
            wait=wait,
        ),
        timeout=TIMEOUT + (wait or 0),
    )


def webhooks() -> Call[list[WebhookAnswer]]:
    """Every webhook, the oldest first."""
    return Call(
        method="GET",
        path=_WEBHOOKS,
        read=lambda response: decode(WebhookAnswers, response).webhooks,
    )


def webhook(webhook_id: str) -> Call[WebhookAnswer]:
    """A webhook, with what could not be delivered. Raises ApiError (404) when there is none."""
    return get(_path(webhook_id), WebhookAnswer)


def create_webhook(url: str, *, types: Sequence[str] = ()) -> Call[WebhookAnswer]:
    """Send every event from now on to an address, or those of some types.

    The secret that signs them is in this answer and never again.
    """
    return send("POST", _WEBHOOKS, WebhookAnswer, {"url": url, "types": list(types)})


def delete_webhook(webhook_id: str) -> Call[None]:
    """Remove a webhook, and what waits to be sent to it."""
    return Call(method="DELETE", path=_path(webhook_id), read=nothing)


def enable_webhook(webhook_id: str) -> Call[WebhookAnswer]:
    """Send to a webhook again, beginning with what could not be delivered."""
    return send("POST", f"{_path(webhook_id)}/enable", WebhookAnswer)


def test_webhook(webhook_id: str) -> Call[TriedWebhook]:
    """Send a message of the type `webhook.test` now, once, and return the result."""
    return send("POST", f"{_path(webhook_id)}/test", TriedWebhook)


def _path(webhook_id: str) -> str:
    return f"{_WEBHOOKS}/{segment(webhook_id)}"
