"""Digests over HTTP; an address is taken and never given back."""

from typing import Final

from msgspec import UNSET

from factbook.api.parameters import PathPart
from factbook.clock import iso, iso_or_none
from factbook.http import audit
from factbook.http.context import WebhookContext
from factbook.http.requests import JsonReply, Reply, Request, reply
from factbook.schemas.events import (
    ChangedDigest,
    NewDigest,
    ShownDigest,
    ShownDigests,
    TriedWebhook,
)
from factbook.webhooks import digests
from factbook.webhooks.digests import DigestCadence, StoredDigest, WantedDigest

_LARGEST: Final = 16 * 1024

DIGEST_ID: Final = PathPart(name="id", description="The digest's id.", format="digest-id")


async def get_digests(request: Request, state: WebhookContext) -> JsonReply[ShownDigests]:
    """Every digest, and of its address the scheme and host alone."""
    found = await digests.list_digests(state.database)
    return reply(ShownDigests([_render_digest(one) for one in found]))


async def get_digest(request: Request, state: WebhookContext) -> JsonReply[ShownDigest]:
    """A digest, with what became of the last one."""
    return reply(_render_digest(await digests.get_digest(state.database, DIGEST_ID.of(request))))


async def post_digest(request: Request, state: WebhookContext) -> JsonReply[ShownDigest]:
    """Send what changes from now on to a channel of Slack or Microsoft Teams.

    Periods without changes are skipped. The address is public, or in a network that the setting
    `outgoing_networks` names.
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
    """Change a digest. One of another owner tells what changes from now on."""
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
    """Remove a digest; nothing is sent any more."""
    write = audit.audit_request_writes(
        request, state, audit.make_digest_entry("digest.delete"), 204
    )
    await digests.delete_digest(DIGEST_ID.of(request), write=write)
    return Reply(status=204)


async def send_digest_test(request: Request, state: WebhookContext) -> JsonReply[TriedWebhook]:
    """Send what the next one would tell by now, once, also if that is nothing.

    It is marked as a test, and what it tells is told again in its time.
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
