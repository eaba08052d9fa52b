"""`factbook people`: accounts of the pages, managed on the database itself."""

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from factbook.cli.failures import EXIT_CODES, CommandError
from factbook.cli.local import DatabaseUrl, on_database
from factbook.cli.output import Json, age, note, print_answer, say
from factbook.clock import iso_or_none

if TYPE_CHECKING:
    from factbook.auth.users import Person
    from factbook.operations.erasure import ErasureReport

app = typer.Typer(
    no_args_is_help=True,
    help="List, invite and erase the people who sign in, and reset their passwords.",
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
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Name of the new account. Leave it out for the first administrator alone.",
        ),
    ] = None,
    role: Annotated[
        str | None,
        typer.Option(
            help="administrator, operator, editor or viewer. Default: viewer; administrator "
            "while there is no account."
        ),
    ] = None,
    confirm: Annotated[
        bool,
        typer.Option(
            "--confirm",
            help="Confirm that the invited person is the user of this name in the catalog or SCIM. "
            "The account then has that user's groups.",
        ),
    ] = False,
    server: Address = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Print a link that creates the account NAME. It works once, within three days.

    The person who opens it chooses a password. The first administrator also chooses a name.

    \b
    Examples:
      factbook people invite
      factbook people invite kim
      factbook people invite kim --confirm --server https://factbook.example.com
    """
    from factbook.operations import commands

    link, given = on_database(database_url, commands.invite, name, role, server, confirmed=confirm)
    note(
        f"Whoever opens this link becomes {given}, once, within three days. It is not shown again."
    )
    say(link)


@app.command(epilog=EXIT_CODES)
def confirm(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the account.")],
    user_name: Annotated[
        str,
        typer.Option(
            "--user-name",
            metavar="USER",
            help="User name in SCIM. Default: the SCIM user who has the account's name.",
        ),
    ] = "",
    database_url: DatabaseUrl = None,
) -> None:
    """Confirm that an account belongs to the user of its name in the catalog and in SCIM.

    The account then has the groups of that user, and the roles that these groups give.

    \b
    Examples:
      factbook people confirm kim
      factbook people confirm kim --user-name kim@example.com
    """
    from factbook.operations import commands

    done = on_database(database_url, commands.confirm_person, name, user_name)
    scim = f" and the SCIM user {done.user_name}" if done.user_name else ""
    note(f"The account {name} is the catalog's user {done.ref}{scim}.")


@app.command(epilog=EXIT_CODES)
def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new account.")],
    subject: Annotated[
        str,
        typer.Option(help="The person's subject at the OpenID Connect provider (claim `sub`)."),
    ],
    role: Annotated[
        str, typer.Option(help="administrator, operator, editor or viewer.")
    ] = "viewer",
    database_url: DatabaseUrl = None,
) -> None:
    """Create an account for somebody who signs in at the OpenID Connect provider.

    This confirms that the person is the user of this name in the catalog and in SCIM. The person
    needs it if the sign-in says that the name is reserved.

    \b
    Examples:
      factbook people add kim --subject 00u1abcd
    """
    from factbook.operations import commands
    from factbook.scim.identity import NewAccount

    done = on_database(database_url, commands.add_person, NewAccount(name, role, subject))
    note(f"{done.ref} can sign in now, as {done.role}.")


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


@app.command(epilog=EXIT_CODES)
def erase(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of the person, with or without an account.")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count the records, and change nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before erasing.")] = False,
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Erase the personal data of somebody who has left. This cannot be undone.

    Deletes the account and everything that belongs to it. In records that stay, such as the audit,
    a pseudonym takes the place of the person. If interrupted, run it again; it resumes.

    \b
    Examples:
      factbook people erase kim --dry-run
      factbook people erase kim --yes
    """
    from factbook.operations import commands

    def agree(report: "ErasureReport") -> None:
        if not yes:
            _ask(report)

    done = on_database(database_url, commands.erase_person, name, None if dry_run else agree)
    rows = [("deleted", *each) for each in done.deleted.items()]
    rows += [("pseudonym", *each) for each in done.replaced.items()]
    answer = {
        "person": done.ref,
        "pseudonym": done.pseudonym or None,
        "deleted": done.deleted,
        "replaced": done.replaced,
    }
    print_answer(answer, ["Change", "Records", "Count"], rows, as_json=as_json)
    if dry_run:
        note("Dry run: no records were changed.")
    else:
        note(f"Erased {done.ref}. The remaining records use the pseudonym {done.pseudonym}.")


def _ask(report: "ErasureReport") -> None:
    """Ask before an erasure; raises CommandError for anything but yes."""
    with suppress(typer.Abort):
        if typer.confirm(f"Erase {report.ref} in {report.total} records for good?", err=True):
            return
    raise CommandError("Erasure canceled. Use --yes to skip the question.")


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
