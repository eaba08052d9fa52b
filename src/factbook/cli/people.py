"""`factbook people`: accounts of the pages, managed on the database itself."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from factbook.cli.failures import EXIT_CODES
from factbook.cli.local import DatabaseUrl, on_database
from factbook.cli.output import Json, age, note, print_answer, say
from factbook.clock import iso_or_none

if TYPE_CHECKING:
    from factbook.auth.users import Person

app = typer.Typer(
    no_args_is_help=True,
    help="List and invite the people who sign in, and reset their passwords.",
    epilog=EXIT_CODES,
)

Address = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="Address that the link begins with. Default: public_url, or host and port.",
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
    from factbook.operations import commands

    found = on_database(database_url, commands.list_people)
    columns = ["Name", "Full name", "Role", "State", "Signs in with", "Last sign-in"]
    print_answer(list(map(_as_json, found)), columns, map(_row, found), as_json=as_json)


@app.command(epilog=EXIT_CODES)
def invite(
    role: Annotated[
        str | None,
        typer.Option(
            help="administrator, operator, editor or viewer. Default: viewer; administrator "
            "while there is no account."
        ),
    ] = None,
    server: Address = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Print a link that creates one account. It works once, within three days.

    The person who opens it chooses a name and a password.

    \b
    Examples:
      factbook people invite
      factbook people invite --role administrator --server https://factbook.example.com
    """
    from factbook.operations import commands

    link, given = on_database(database_url, commands.invite, role, server)
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
    """Print a link with which a person sets a new password. It works once, within three days.

    The current password works until then.

    \b
    Examples:
      factbook people reset kim
    """
    from factbook.operations import commands

    link = on_database(database_url, commands.reset_password, name, server)
    note(f"Whoever opens this link sets the password of {name}. It is not shown again.")
    say(link)


def _row(person: "Person") -> tuple[object, ...]:
    return (
        person.name,
        person.display_name,
        person.role,
        "active" if person.disabled_at is None else "disabled",
        person.issuer or ("password" if person.has_password else "nothing yet"),
        age(person.signed_in_at) or "never",
    )


def _as_json(person: "Person") -> dict[str, Any]:
    return {
        "ref": person.ref,
        "displayName": person.display_name,
        "role": person.role,
        "hasPassword": person.has_password,
        "issuer": person.issuer,
        "createdAt": iso_or_none(person.created_at),
        "signedInAt": iso_or_none(person.signed_in_at),
        "disabledAt": iso_or_none(person.disabled_at),
    }
