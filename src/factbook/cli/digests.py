"""`factbook digests`: the channels that are told what changed for a team."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from factbook.cli.connection import DEFAULT_SERVER, Server, Token, connected
from factbook.cli.failures import EXIT_CODES, CommandError
from factbook.cli.output import Json, age, print_answer, print_json, say
from factbook.schemas.events import CadenceUnit, DigestForm, Weekday

if TYPE_CHECKING:
    from factbook.schemas.events import ShownDigest

app = typer.Typer(
    no_args_is_help=True,
    help="Tell teams in Slack and Microsoft Teams what changed.",
    epilog=EXIT_CODES,
)

Id = Annotated[str, typer.Argument(metavar="ID", help="The digest's id; `list` shows it.")]
_STDIN = "-"
_OWNER = "A group, with those below it. Default: the whole catalog."
_FORM = "What the address takes. Default: slack."
_ZONE = "Such as Europe/Paris. Default: UTC."


@app.command("list", epilog=EXIT_CODES)
def list_(
    context: typer.Context,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """List the digests, with what became of the last message.

    \b
    Examples:
      factbook digests list
    """
    with connected(context, server, token) as client:
        found = client.digests()
    print_answer(found, _COLUMNS, map(_row, found), as_json=as_json)


@app.command(epilog=EXIT_CODES)
def create(
    context: typer.Context,
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL", help="Incoming webhook of the channel, a secret; - reads it from stdin."
        ),
    ],
    *,
    owner: Annotated[str | None, typer.Option(metavar="REF", help=_OWNER)] = None,
    form: Annotated[DigestForm, typer.Option(help=_FORM)] = "slack",
    cadence: Annotated[CadenceUnit, typer.Option(help="Default: weekly.")] = "weekly",
    day: Annotated[Weekday, typer.Option(help="Of a weekly one. Default: monday.")] = "monday",
    hour: Annotated[int, typer.Option(min=0, max=23, help="Default: 8.")] = 8,
    time_zone: Annotated[str, typer.Option(metavar="ZONE", help=_ZONE)] = "UTC",
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Send what changes from now on to a channel, and nothing when nothing changed.

    \b
    Examples:
      factbook digests create - --owner group:payments < webhook-of-channel
      factbook digests create - --form teams --cadence daily --time-zone Europe/Paris
    """
    with connected(context, server, token) as client:
        made = client.create_digest(
            _address(url),
            form,
            owner=owner,
            cadence=cadence,
            day=day,
            hour=hour,
            time_zone=time_zone,
        )
    _show(made, as_json=as_json)


@app.command(epilog=EXIT_CODES)
def change(
    context: typer.Context,
    digest: Id,
    *,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Another address; - reads it from stdin.")
    ] = None,
    owner: Annotated[
        str | None, typer.Option(metavar="REF", help="Another group; empty for the whole catalog.")
    ] = None,
    form: Annotated[DigestForm | None, typer.Option(help="What the address takes.")] = None,
    cadence: Annotated[CadenceUnit | None, typer.Option(help="How often.")] = None,
    day: Annotated[Weekday | None, typer.Option(help="Of a weekly one.")] = None,
    hour: Annotated[int | None, typer.Option(min=0, max=23, help="In its time zone.")] = None,
    time_zone: Annotated[
        str | None, typer.Option(metavar="ZONE", help="Such as Europe/Paris.")
    ] = None,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Change what is given of a digest. One of another owner tells what changes from now on.

    \b
    Examples:
      factbook digests change f3a9 --hour 9 --time-zone Europe/Paris
    """
    with connected(context, server, token) as client:
        before = client.digest(digest)
        changed = client.replace_digest(
            digest,
            form or before.form,
            url=None if url is None else _address(url),
            owner=before.owner if owner is None else owner or None,
            cadence=cadence or before.cadence,
            day=day or before.day or "monday",
            hour=before.hour if hour is None else hour,
            time_zone=time_zone or before.time_zone,
        )
    _show(changed, as_json=as_json)


@app.command("test", epilog=EXIT_CODES)
def try_(
    context: typer.Context,
    digest: Id,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Send what the next one would tell by now, marked as a test, and report the result.

    \b
    Examples:
      factbook digests test f3a9
    """
    with connected(context, server, token) as client:
        tried = client.test_digest(digest)
    if as_json:
        print_json(tried)
    elif tried.delivered:
        say(f"Delivered: {tried.status} after {tried.milliseconds} ms.")
    if not tried.delivered:
        raise CommandError(f"The message was not delivered: {tried.error}.")


@app.command(epilog=EXIT_CODES)
def delete(
    context: typer.Context, digest: Id, server: Server = DEFAULT_SERVER, token: Token = None
) -> None:
    """Remove a digest.

    \b
    Examples:
      factbook digests delete f3a9
    """
    with connected(context, server, token) as client:
        client.delete_digest(digest)
    say(f"Deleted: {digest}")


_COLUMNS = ("Id", "Owner", "Form", "Address", "When", "Next", "Last success", "Problem")


def _row(digest: "ShownDigest") -> tuple[object, ...]:
    return (
        digest.id,
        digest.owner or "everybody",
        digest.form,
        digest.url,
        _when(digest),
        age(digest.next_at),
        age(digest.last_success_at),
        digest.last_error,
    )


def _when(digest: "ShownDigest") -> str:
    return f"{digest.day or 'every day'} {digest.hour}:00 {digest.time_zone}"


def _show(digest: "ShownDigest", *, as_json: bool) -> None:
    if as_json:
        print_json(digest)
    else:
        say(f"{digest.id}: {digest.owner or 'everybody'}, {_when(digest)}.")


def _address(given: str) -> str:
    return sys.stdin.readline().removeprefix("\ufeff").strip() if given == _STDIN else given
