"""`factbook events`: changes in the catalog, once or continuously."""

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from factbook.cli.connection import DEFAULT_SERVER, Server, Token, connected
from factbook.cli.output import note, print_json, say, until_enough
from factbook.errors import InputError

if TYPE_CHECKING:
    from factbook.client import Event, EventPage

_PAGE = 1_000
_WAIT = 30  # seconds


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
        with connected(context, server, token) as client, until_enough():
            wanted = partial(client.events, types=type or (), set=set, source=source, entity=entity)
            for page in _pages(wanted, after, limit, follow=follow):
                for event in page.events:
                    _show(event, as_json=as_json)
                sys.stdout.flush()
                cursor = page.next_cursor
    finally:
        if cursor != after:
            note(f"To go on: --after {cursor}")


def _pages(
    ask: Callable[..., "EventPage"], cursor: str | None, left: int | None, *, follow: bool
) -> Iterator["EventPage"]:
    """Page after page, until there are no more, or `left` events were read."""
    wait = None
    while True:
        page = ask(after=cursor, limit=left and min(left, _PAGE), wait=wait)
        yield page
        cursor = page.next_cursor
        if left is not None:
            left -= len(page.events)
        if left == 0 or not (page.more or follow):
            return
        wait = None if page.more else _WAIT


def _show(event: "Event", *, as_json: bool) -> None:
    if as_json:
        print_json(event, indent=0)
    else:
        say(f"{event.at}  {event.type:<14}  {event.subject}")
