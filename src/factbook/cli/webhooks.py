"""`factbook webhooks`: the addresses that receive events."""

from typing import TYPE_CHECKING, Annotated

import typer

from factbook.cli.connection import DEFAULT_SERVER, Server, Token, connected
from factbook.cli.failures import EXIT_CODES, CommandError
from factbook.cli.output import Json, age, note, print_answer, print_json, say

if TYPE_CHECKING:
    from factbook.client import Webhook

app = typer.Typer(no_args_is_help=True, help="Send events to other systems.", epilog=EXIT_CODES)

Id = Annotated[str, typer.Argument(metavar="ID", help="The webhook's id; `list` shows it.")]


@app.command("list", epilog=EXIT_CODES)
def list_(
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
    with connected(context, server, token) as client:
        found = client.webhooks()
    print_answer(found, _COLUMNS, map(_row, found), as_json=as_json)


@app.command(epilog=EXIT_CODES)
def show(
    context: typer.Context,
    webhook: Id,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Show what could not be delivered to a webhook.

    \b
    Examples:
      factbook webhooks show f3a9
    """
    with connected(context, server, token) as client:
        found = client.webhook(webhook)
    lost = found.undelivered or []
    rows = [(one.event_id, one.type, age(one.first_at), one.attempts, one.error) for one in lost]
    columns = ("Event", "Type", "First sent", "Times", "Problem")
    print_answer(found, columns, rows, as_json=as_json)


@app.command(epilog=EXIT_CODES)
def create(
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
    with connected(context, server, token) as client:
        made = client.create_webhook(url, types=type or ())
    if as_json:
        print_json(made)
        return
    note(f"The webhook {made.id} is made. Keep its secret: it is not shown again.")
    say(made.secret or "")


@app.command("test", epilog=EXIT_CODES)
def try_(
    context: typer.Context,
    webhook: Id,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Send one test message now, and report the result.

    \b
    Examples:
      factbook webhooks test f3a9
    """
    with connected(context, server, token) as client:
        tried = client.test_webhook(webhook)
    if as_json:
        print_json(tried)
    elif tried.delivered:
        say(f"Delivered: {tried.status} after {tried.milliseconds} ms.")
    if not tried.delivered:
        raise CommandError(f"The message was not delivered: {tried.error}.")


@app.command(epilog=EXIT_CODES)
def enable(
    context: typer.Context, webhook: Id, server: Server = DEFAULT_SERVER, token: Token = None
) -> None:
    """Enable a disabled webhook again, and retry what was given up.

    \b
    Examples:
      factbook webhooks enable f3a9
    """
    with connected(context, server, token) as client:
        found = client.enable_webhook(webhook)
    say(f"Enabled: {found.url}, {found.waiting} messages waiting.")


@app.command(epilog=EXIT_CODES)
def delete(
    context: typer.Context, webhook: Id, server: Server = DEFAULT_SERVER, token: Token = None
) -> None:
    """Remove a webhook and its waiting messages.

    \b
    Examples:
      factbook webhooks delete f3a9
    """
    with connected(context, server, token) as client:
        client.delete_webhook(webhook)
    say(f"Deleted: {webhook}")


_COLUMNS = ("Id", "Address", "Types", "State", "Last success", "Waiting", "Given up", "Problem")


def _row(webhook: "Webhook") -> tuple[object, ...]:
    return (
        webhook.id,
        webhook.url,
        ", ".join(webhook.types) or "all",
        "disabled" if webhook.disabled_at else "enabled",
        age(webhook.last_success_at),
        webhook.waiting,
        webhook.given_up,
        webhook.last_error,
    )
