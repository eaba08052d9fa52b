"""`factbook people`: accounts of the pages, managed on the database itself."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from factbook.cli.failures import EXIT_CODES
from factbook.cli.local import DatabaseUrl, settings_from
from factbook.cli.output import Json, note, print_json, print_table, say
from factbook.clock import iso

if TYPE_CHECKING:
    from factbook.auth.users import Person

app = typer.Typer(
    no_args_is_help=True,
    help="List, invite and let in again the people who sign in to the pages.",
    epilog=EXIT_CODES,
)

Address = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="Address that the link begins with; without it public_url, or host and port.",
    ),
]


@app.command("list", epilog=EXIT_CODES)
def list_(database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List everyone who has an account, including those who are disabled.

    \b
    Examples:
      factbook people list
      factbook people list --json
    """
    # See serving.serve.
    import asyncio

    from factbook import app
    from factbook.operations import commands

    service = app.application(settings_from(database_url))
    found = asyncio.run(commands.list_people(service))
    if as_json:
        print_json([_as_json(person) for person in found])
    else:
        columns = ["Name", "Full name", "Role", "State", "Signs in with", "Last sign-in"]
        print_table(columns, map(_row, found))


@app.command(epilog=EXIT_CODES)
def invite(
    role: Annotated[
        str | None,
        typer.Option(
            help="administrator or viewer; viewer, or administrator while nobody has an account."
        ),
    ] = None,
    server: Address = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Print a link that makes one account. It works once, within three days.

    Whoever opens it chooses a name and a password.

    \b
    Examples:
      factbook people invite
      factbook people invite --role administrator --server https://factbook.example.com
    """
    import asyncio

    from factbook import app
    from factbook.operations import commands

    service = app.application(settings_from(database_url))
    link, given = asyncio.run(commands.invite(service, role, server))
    note(
        f"Whoever opens this link becomes {given}, once, within three days. It is not shown again."
    )
    say(link)


@app.command(epilog=EXIT_CODES)
def reset(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name the person signs in with.")],
    server: Address = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Print a link with which somebody sets another password. It works once, within three days.

    The present password works until then.

    \b
    Examples:
      factbook people reset kim
    """
    import asyncio

    from factbook import app
    from factbook.operations import commands

    service = app.application(settings_from(database_url))
    link = asyncio.run(commands.reset_password(service, name, server))
    note(f"Whoever opens this link sets the password of {name}. It is not shown again.")
    say(link)


def _row(person: "Person") -> tuple[object, ...]:
    return (
        person.name,
        person.display_name,
        person.role,
        "active" if person.disabled_at is None else "disabled",
        person.issuer or ("password" if person.has_password else "nothing yet"),
        _time(person.signed_in_at) or "never",
    )


def _as_json(person: "Person") -> dict[str, Any]:
    return {
        "ref": person.ref,
        "displayName": person.display_name,
        "role": person.role,
        "hasPassword": person.has_password,
        "issuer": person.issuer,
        "createdAt": _time(person.created_at),
        "signedInAt": _time(person.signed_in_at),
        "disabledAt": _time(person.disabled_at),
    }


def _time(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else iso(milliseconds)
