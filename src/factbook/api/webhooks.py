"""Webhooks and digests over HTTP, and the routes below /api/events. Secrets are shown once."""

from collections.abc import Sequence
from typing import Final

from msgspec import UNSET
from msgspec.structs import asdict

from factbook.api import events
from factbook.api.endpoint import NOTHING_STORED, Route
from factbook.api.parameters import (
    PathPart,
)
from factbook.auth.permissions import (
    CATALOG_READ,
    CHECK_READ,
    EVENTS_READ,
    OPERATIONS_MANAGE,
)
from factbook.clock import iso, iso_or_none
from factbook.errors import ConflictError, GoneError
from factbook.http import audit
from factbook.http.context import WebhookContext
from factbook.http.requests import JsonReply, Reply, Request, reply
from factbook.schemas import events as schemas
from factbook.schemas.events import (
    ChangedDigest,
    MadeWebhook,
    NewDigest,
    NewWebhook,
    ShownDigest,
    ShownDigests,
    TriedWebhook,
    Undelivered,
    Webhook,
    WebhookDetail,
    Webhooks,
)
from factbook.webhooks import digests, sender, store
from factbook.webhooks.digests import DigestCadence, StoredDigest, WantedDigest
from factbook.webhooks.store import StoredWebhook

_LARGEST: Final = 16 * 1024
WEBHOOK_ID: Final = PathPart(name="id", description="The webhook's id.", format="webhook-id")
# A webhook sends events outside the service and outlives the token that created it.
_MANAGE_WEBHOOKS = (EVENTS_READ, OPERATIONS_MANAGE)
_WEBHOOKS = "/webhooks"
_WEBHOOK = f"{_WEBHOOKS}/{{id}}"


async def get_webhooks(request: Request, state: WebhookContext) -> JsonReply[Webhooks]:
    """Every webhook, without its secret, and with only the scheme and host of its address."""
    found = await store.list_webhooks(state.database)
    return reply(Webhooks([_render_webhook(one) for one in found]))


async def get_webhook(request: Request, state: WebhookContext) -> JsonReply[WebhookDetail]:
    """A webhook, with its failed deliveries."""
    found, lost = await sender.get_webhook_detail(state.database, WEBHOOK_ID.of(request))
    undelivered = [
        Undelivered(one.event_id, one.type, iso(one.first_at), one.attempts, one.error)
        for one in lost
    ]
    return reply(WebhookDetail(**asdict(_render_webhook(found)), undelivered=undelivered))


async def post_webhook(request: Request, state: WebhookContext) -> JsonReply[MadeWebhook]:
    """Send every event from now on to an address.

    Only this answer contains the secret and the whole address.

    The address has to be public, or in a network that the setting `outgoing_networks` names.
    """
    given: NewWebhook = await request.json(NewWebhook, _LARGEST)
    made = await sender.create_webhook(
        state.database,
        state.post,
        state.token_key,
        given.url,
        given.types,
        actor=request.actor,
        now=state.clock(),
        write=audit.audit_request_writes(
            request, state, audit.make_webhook_entry("webhook.create"), 201
        ),
    )
    shown = asdict(_render_webhook(made.webhook)) | {"url": made.url, "secret": made.secret}
    return reply(MadeWebhook(**shown), 201)


async def delete_webhook(request: Request, state: WebhookContext) -> Reply:
    """Remove a webhook, with everything that waits to be sent to it."""
    write = audit.audit_request_writes(
        request, state, audit.make_webhook_entry("webhook.delete"), 204
    )
    await sender.delete_webhook(WEBHOOK_ID.of(request), write=write)
    return Reply(status=204)


async def enable_webhook(request: Request, state: WebhookContext) -> JsonReply[Webhook]:
    """Resume a webhook, starting with what could not be delivered."""
    write = audit.audit_request_writes(request, state, audit.make_webhook_entry("webhook.enable"))
    return reply(
        _render_webhook(
            await sender.enable_webhook(WEBHOOK_ID.of(request), now=state.clock(), write=write)
        )
    )


async def send_webhook_test(request: Request, state: WebhookContext) -> JsonReply[TriedWebhook]:
    """Send a message of the type `webhook.test` once, now, and report the outcome."""
    tried = await sender.send_test_message(
        state.database, state.post, state.token_key, WEBHOOK_ID.of(request), state.clock()
    )
    return reply(TriedWebhook(delivered=tried.error is None, **tried._asdict()))


def _render_webhook(stored: StoredWebhook) -> Webhook:
    return Webhook(
        id=stored.id,
        url=stored.url,
        types=list(stored.types),
        created_at=iso(stored.created_at),
        created_by=stored.created_by,
        last_success_at=iso_or_none(stored.succeeded_at),
        last_failure_at=iso_or_none(stored.failed_at),
        last_error=stored.error,
        disabled_at=iso_or_none(stored.disabled_at),
        waiting=stored.waiting,
        given_up=stored.given_up,
    )


EVENT_ROUTES: Sequence[Route] = (
    Route(
        "GET", "", events.get_events, (EVENTS_READ,), events.EVENT_PARAMETERS, refusals=(GoneError,)
    ),
    Route("GET", _WEBHOOKS, get_webhooks, _MANAGE_WEBHOOKS),
    Route(
        "POST",
        _WEBHOOKS,
        post_webhook,
        _MANAGE_WEBHOOKS,
        body=schemas.NewWebhook,
        status=201,
        refusals=(ConflictError,),
        reading=NOTHING_STORED,
    ),
    Route("GET", _WEBHOOK, get_webhook, _MANAGE_WEBHOOKS, (WEBHOOK_ID,)),
    Route(
        "DELETE",
        _WEBHOOK,
        delete_webhook,
        _MANAGE_WEBHOOKS,
        (WEBHOOK_ID,),
        status=204,
        reading=NOTHING_STORED,
    ),
    Route(
        "POST",
        f"{_WEBHOOK}/enable",
        enable_webhook,
        _MANAGE_WEBHOOKS,
        (WEBHOOK_ID,),
        reading=NOTHING_STORED,
    ),
    Route(
        "POST",
        f"{_WEBHOOK}/test",
        send_webhook_test,
        _MANAGE_WEBHOOKS,
        (WEBHOOK_ID,),
        refusals=(ConflictError,),
        reading=NOTHING_STORED,
    ),
)


DIGEST_ID: Final = PathPart(name="id", description="The digest's id.", format="digest-id")


async def get_digests(request: Request, state: WebhookContext) -> JsonReply[ShownDigests]:
    """Every digest, with only the scheme and host of its address."""
    found = await digests.list_digests(state.database)
    return reply(ShownDigests([_render_digest(one) for one in found]))


async def get_digest(request: Request, state: WebhookContext) -> JsonReply[ShownDigest]:
    """A digest, with the result of its last delivery."""
    return reply(_render_digest(await digests.get_digest(state.database, DIGEST_ID.of(request))))


async def post_digest(request: Request, state: WebhookContext) -> JsonReply[ShownDigest]:
    """Report changes from now on to a channel of Slack or Microsoft Teams.

    Periods without changes are skipped. The address has to be public, or in a network that the
    setting `outgoing_networks` names.
    """
    wanted = _parse_digest_body(await request.json(NewDigest, _LARGEST))
    made = await digests.create_digest(
        state.database,
        state.post,
        state.token_key,
        wanted,
        actor=request.actor,
        now=state.clock(),
        write=audit.audit_request_writes(
            request, state, audit.make_digest_entry("digest.create"), 201
        ),
    )
    return reply(_render_digest(made), 201)


async def put_digest(request: Request, state: WebhookContext) -> JsonReply[ShownDigest]:
    """Change a digest. A new owner's changes are reported from now on."""
    wanted = _parse_digest_body(await request.json(ChangedDigest, _LARGEST))
    changed = await digests.change_digest(
        state.database,
        state.post,
        state.token_key,
        DIGEST_ID.of(request),
        wanted,
        now=state.clock(),
        write=audit.audit_request_writes(request, state, audit.make_digest_entry("digest.replace")),
    )
    return reply(_render_digest(changed))


async def delete_digest(request: Request, state: WebhookContext) -> Reply:
    """Remove a digest; nothing more is sent."""
    write = audit.audit_request_writes(
        request, state, audit.make_digest_entry("digest.delete"), 204
    )
    await digests.delete_digest(DIGEST_ID.of(request), write=write)
    return Reply(status=204)


async def send_digest_test(request: Request, state: WebhookContext) -> JsonReply[TriedWebhook]:
    """Send the next digest as of now, once, even if nothing changed.

    It is marked as a test, and the next regular digest reports the same changes again.
    """
    tried = await digests.send_test_digest(
        state.database,
        state.post,
        state.token_key,
        DIGEST_ID.of(request),
        state.clock(),
        state.settings.public_url,
    )
    return reply(TriedWebhook(delivered=tried.error is None, **tried._asdict()))


def _parse_digest_body(given: NewDigest | ChangedDigest) -> WantedDigest:
    cadence = DigestCadence(given.cadence, given.day, given.hour, given.time_zone)
    owner = None if given.owner is UNSET else given.owner
    url = None if given.url is UNSET else given.url
    form = None if given.form is UNSET else given.form
    return WantedDigest(owner, form, cadence, url)


def _render_digest(stored: StoredDigest) -> ShownDigest:
    unit, day, hour, time_zone = stored.cadence
    return ShownDigest(
        id=stored.id,
        owner=stored.owner or None,
        form=stored.form,
        url=stored.url,
        cadence=unit,
        hour=hour,
        time_zone=time_zone,
        created_at=iso(stored.created_at),
        created_by=stored.created_by,
        told_up_to=iso(stored.told_up_to),
        next_at=iso(stored.next_at),
        last_success_at=iso_or_none(stored.sent_at),
        last_failure_at=iso_or_none(stored.failed_at),
        last_error=stored.error,
        day=day if unit == "weekly" else None,
    )


# A digest sends results outside the service and outlives the token that created it.
_MANAGE_DIGESTS = (CATALOG_READ, CHECK_READ, OPERATIONS_MANAGE)
_DIGESTS = "/digests"
_DIGEST = f"{_DIGESTS}/{{id}}"
_DIGEST_PARAMETERS = (DIGEST_ID,)
# Below /api/tech-insights/v1.
DIGEST_ROUTES: Sequence[Route] = (
    Route("GET", _DIGESTS, get_digests, _MANAGE_DIGESTS),
    Route(
        "POST",
        _DIGESTS,
        post_digest,
        _MANAGE_DIGESTS,
        body=NewDigest,
        status=201,
        refusals=(ConflictError,),
        reading=NOTHING_STORED,
    ),
    Route("GET", _DIGEST, get_digest, _MANAGE_DIGESTS, _DIGEST_PARAMETERS),
    Route(
        "PUT",
        _DIGEST,
        put_digest,
        _MANAGE_DIGESTS,
        _DIGEST_PARAMETERS,
        body=ChangedDigest,
        reading=NOTHING_STORED,
    ),
    Route(
        "DELETE",
        _DIGEST,
        delete_digest,
        _MANAGE_DIGESTS,
        _DIGEST_PARAMETERS,
        status=204,
        reading=NOTHING_STORED,
    ),
    Route(
        "POST",
        f"{_DIGEST}/test",
        send_digest_test,
        _MANAGE_DIGESTS,
        _DIGEST_PARAMETERS,
        refusals=(ConflictError,),
        reading=NOTHING_STORED,
    ),
)
