"""`factbook events`, `webhooks` and `digests`: changes in the catalog, and where they are sent."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from factbook.cli.command_parts import (
    DEFAULT_SERVER,
    EXIT_CODES,
    CommandError,
    Json,
    Server,
    Token,
    connect_server,
    format_age,
    print_answer,
    print_json,
    print_note,
    say,
    until_enough,
)
from factbook.errors import InputError
from factbook.schemas.events import CadenceUnit, DigestForm, Weekday

if TYPE_CHECKING:
    from factbook.client import EventPage, Webhook
    from factbook.schemas.events import ShownDigest, TriedWebhook


_EVENTS_PER_PAGE = 1_000
_WAIT_SECONDS = 30  # seconds

webhooks_app = typer.Typer(
    no_args_is_help=True, help="Send events to other systems.", epilog=EXIT_CODES
)

WebhookId = Annotated[str, typer.Argument(metavar="ID", help="The webhook's id; `list` shows it.")]

digests_app = typer.Typer(
    no_args_is_help=True,
    help="Tell teams in Slack and Microsoft Teams what changed.",
    epilog=EXIT_CODES,
)

DigestId = Annotated[str, typer.Argument(metavar="ID", help="The digest's id; `list` shows it.")]
_STDIN = "-"
_OWNER_OPTION = "A group and its subgroups. Default: the whole catalog."
_FORM_OPTION = "Format of the messages. Default: slack."
_ZONE_OPTION = "Such as Europe/Paris. Default: UTC."


def events(
    context: typer.Context,
    *,
    after: Annotated[
        str | None,
        typer.Option(
            metavar="CURSOR", help="Continue where another call ended; `now`: with new events."
        ),
    ] = None,
    type: Annotated[
        list[str] | None,
        typer.Option(help="Only events of this type, e.g. set.replaced; may be given again."),
    ] = None,
    set: Annotated[
        str | None, typer.Option(help="Only events of this set and its entities.")
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="Only events of this data source and its facts.")
    ] = None,
    entity: Annotated[
        str | None,
        typer.Option(metavar="REF", help="Only events of this entity: kind:namespace/name."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after this many.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Continue until stopped.")] = False,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each event as JSON.")] = False,
) -> None:
    """Print what changed, oldest first, and on standard error the cursor to continue with.

    \b
    Examples:
      factbook events --set services --limit 20
      factbook events --follow --after now --type source.down --json
    """
    if follow and limit is not None:
        raise InputError("--follow does not end: leave out --limit.")
    cursor = after
    try:
        with connect_server(context, server, token) as client, until_enough():
            wanted = partial(client.events, types=type or (), set=set, source=source, entity=entity)
            for page in _event_pages(wanted, after, limit, follow=follow):
                for event in page.events:
                    if as_json:
                        print_json(event, indent=0)
                    else:
                        say(f"{event.at}  {event.type:<14}  {event.subject}")
                sys.stdout.flush()
                cursor = page.next_cursor
    finally:
        if cursor != after:
            print_note(f"To continue: --after {cursor}")


def _event_pages(
    ask: Callable[..., "EventPage"], cursor: str | None, left: int | None, *, follow: bool
) -> Iterator["EventPage"]:
    """Iterate over pages until there are no more, or `left` events were read."""
    wait = None
    while True:
        page = ask(after=cursor, limit=left and min(left, _EVENTS_PER_PAGE), wait=wait)
        yield page
        cursor = page.next_cursor
        if left is not None:
            left -= len(page.events)
        if left == 0 or not (page.more or follow):
            return
        wait = None if page.more else _WAIT_SECONDS


@webhooks_app.command("list", epilog=EXIT_CODES)
def print_webhooks(
    context: typer.Context,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """List the webhooks, with their health.

    \b
    Examples:
      factbook webhooks list
    """
    with connect_server(context, server, token) as client:
        found = client.webhooks()
    print_answer(found, _WEBHOOK_COLUMNS, map(_webhook_row, found), as_json=as_json)


@webhooks_app.command("show", epilog=EXIT_CODES)
def print_webhook(
    context: typer.Context,
    webhook: WebhookId,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Show what could not be delivered to a webhook.

    \b
    Examples:
      factbook webhooks show f3a9
    """
    with connect_server(context, server, token) as client:
        found = client.webhook(webhook)
    lost = found.undelivered or []
    rows = [
        (one.event_id, one.type, format_age(one.first_at), one.attempts, one.error) for one in lost
    ]
    columns = ("Event", "Type", "First sent", "Times", "Problem")
    print_answer(found, columns, rows, as_json=as_json)


@webhooks_app.command("create", epilog=EXIT_CODES)
def add_webhook(
    context: typer.Context,
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Address that each event is posted to.")
    ],
    type: Annotated[
        list[str] | None,
        typer.Option(help="Only events of this type, e.g. set.replaced; may be given again."),
    ] = None,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Send events from now on to an address, and print the secret that signs them.

    The secret is shown only once.

    \b
    Examples:
      factbook webhooks create https://events.example.com/factbook \\
          --type source.down --type source.up
    """
    with connect_server(context, server, token) as client:
        made = client.create_webhook(url, types=type or ())
    if as_json:
        print_json(made)
        return
    print_note(f"The webhook {made.id} was created. Keep its secret: it is not shown again.")
    say(made.secret or "")


@webhooks_app.command("test", epilog=EXIT_CODES)
def try_webhook(
    context: typer.Context,
    webhook: WebhookId,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Send one test message now, and report the result.

    \b
    Examples:
      factbook webhooks test f3a9
    """
    with connect_server(context, server, token) as client:
        tried = client.test_webhook(webhook)
    _report_test(tried, as_json=as_json)


def _report_test(tried: "TriedWebhook", *, as_json: bool) -> None:
    if as_json:
        print_json(tried)
    elif tried.delivered:
        say(f"Delivered: {tried.status} after {tried.milliseconds} ms.")
    if not tried.delivered:
        raise CommandError(f"The message was not delivered: {tried.error}.")


@webhooks_app.command("enable", epilog=EXIT_CODES)
def resume_webhook(
    context: typer.Context, webhook: WebhookId, server: Server = DEFAULT_SERVER, token: Token = None
) -> None:
    """Enable a disabled webhook again, and retry what was given up.

    \b
    Examples:
      factbook webhooks enable f3a9
    """
    with connect_server(context, server, token) as client:
        found = client.enable_webhook(webhook)
    say(f"Enabled: {found.url}, {found.waiting} messages waiting.")


@webhooks_app.command("delete", epilog=EXIT_CODES)
def remove_webhook(
    context: typer.Context, webhook: WebhookId, server: Server = DEFAULT_SERVER, token: Token = None
) -> None:
    """Remove a webhook and its waiting messages.

    \b
    Examples:
      factbook webhooks delete f3a9
    """
    with connect_server(context, server, token) as client:
        client.delete_webhook(webhook)
    say(f"Deleted: {webhook}")


_WEBHOOK_COLUMNS = (
    "Id",
    "Address",
    "Types",
    "State",
    "Last success",
    "Waiting",
    "Given up",
    "Problem",
)


def _webhook_row(webhook: "Webhook") -> tuple[object, ...]:
    return (
        webhook.id,
        webhook.url,
        ", ".join(webhook.types) or "all",
        "disabled" if webhook.disabled_at else "enabled",
        format_age(webhook.last_success_at),
        webhook.waiting,
        webhook.given_up,
        webhook.last_error,
    )


@digests_app.command("list", epilog=EXIT_CODES)
def print_digests(
    context: typer.Context,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """List the digests, with the result of each last delivery.

    \b
    Examples:
      factbook digests list
    """
    with connect_server(context, server, token) as client:
        found = client.digests()
    print_answer(found, _DIGEST_COLUMNS, map(_digest_row, found), as_json=as_json)


@digests_app.command("create", epilog=EXIT_CODES)
def add_digest(
    context: typer.Context,
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL", help="Incoming webhook of the channel, a secret; - reads it from stdin."
        ),
    ],
    *,
    owner: Annotated[str | None, typer.Option(metavar="REF", help=_OWNER_OPTION)] = None,
    form: Annotated[DigestForm, typer.Option(help=_FORM_OPTION)] = "slack",
    cadence: Annotated[CadenceUnit, typer.Option(help="Default: weekly.")] = "weekly",
    day: Annotated[Weekday, typer.Option(help="Of a weekly digest. Default: monday.")] = "monday",
    hour: Annotated[int, typer.Option(min=0, max=23, help="Default: 8.")] = 8,
    time_zone: Annotated[str, typer.Option(metavar="ZONE", help=_ZONE_OPTION)] = "UTC",
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Report changes from now on to a channel; periods without changes are skipped.

    \b
    Examples:
      factbook digests create - --owner group:payments < webhook-of-channel
      factbook digests create - --form teams --cadence daily --time-zone Europe/Paris
    """
    with connect_server(context, server, token) as client:
        made = client.create_digest(
            _read_address(url),
            form,
            owner=owner,
            cadence=cadence,
            day=day,
            hour=hour,
            time_zone=time_zone,
        )
    _print_digest(made, as_json=as_json)


@digests_app.command("change", epilog=EXIT_CODES)
def change_digest(
    context: typer.Context,
    digest: DigestId,
    *,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Another address; - reads it from stdin.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option(metavar="REF", help="Another group; empty for the whole catalog.")
    ] = None,
    form: Annotated[DigestForm | None, typer.Option(help="Format of the messages.")] = None,
    cadence: Annotated[CadenceUnit | None, typer.Option(help="How often.")] = None,
    day: Annotated[Weekday | None, typer.Option(help="Of a weekly digest.")] = None,
    hour: Annotated[int | None, typer.Option(min=0, max=23, help="Hour in the time zone.")] = None,
    time_zone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Such as Europe/Paris.")
    ] = None,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Change the given settings of a digest. A new owner's changes are reported from now on.

    \b
    Examples:
      factbook digests change f3a9 --hour 9 --time-zone Europe/Paris
    """
    with connect_server(context, server, token) as client:
        before = client.digest(digest)
        changed = client.replace_digest(
            digest,
            form or before.form,
            url=None if url is None else _read_address(url),
            owner=before.owner if owner is None else owner or None,
            cadence=cadence or before.cadence,
            day=day or before.day or "monday",
            hour=before.hour if hour is None else hour,
            time_zone=time_zone or before.time_zone,
        )
    _print_digest(changed, as_json=as_json)


@digests_app.command("test", epilog=EXIT_CODES)
def try_digest(
    context: typer.Context,
    digest: DigestId,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Send a digest now, marked as a test, and report the result.

    \b
    Examples:
      factbook digests test f3a9
    """
    with connect_server(context, server, token) as client:
        tried = client.test_digest(digest)
    _report_test(tried, as_json=as_json)


@digests_app.command("delete", epilog=EXIT_CODES)
def remove_digest(
    context: typer.Context, digest: DigestId, server: Server = DEFAULT_SERVER, token: Token = None
) -> None:
    """Remove a digest.

    \b
    Examples:
      factbook digests delete f3a9
    """
    with connect_server(context, server, token) as client:
        client.delete_digest(digest)
    say(f"Deleted: {digest}")


_DIGEST_COLUMNS = ("Id", "Owner", "Form", "Address", "When", "Next", "Last success", "Problem")


def _digest_row(digest: "ShownDigest") -> tuple[object, ...]:
    return (
        digest.id,
        digest.owner or "everybody",
        digest.form,
        digest.url,
        _cadence_in_words(digest),
        format_age(digest.next_at),
        format_age(digest.last_success_at),
        digest.last_error,
    )


def _cadence_in_words(digest: "ShownDigest") -> str:
    return f"{digest.day or 'every day'} {digest.hour}:00 {digest.time_zone}"


def _print_digest(digest: "ShownDigest", *, as_json: bool) -> None:
    if as_json:
        print_json(digest)
    else:
        say(f"{digest.id}: {digest.owner or 'everybody'}, {_cadence_in_words(digest)}.")


def _read_address(given: str) -> str:
    return sys.stdin.readline().removeprefix("\ufeff").strip() if given == _STDIN else given
