"""`factbook people`, `token` and `audit`: accounts, API tokens and the audit, on the database."""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer

from factbook.cli.command_parts import (
    EXIT_CODES,
    CommandError,
    DatabaseUrl,
    Json,
    format_age,
    print_answer,
    print_note,
    run_on_database,
    run_on_new_database,
    say,
    until_enough,
)
from factbook.clock import iso_or_none, milliseconds, now
from factbook.errors import InputError

if TYPE_CHECKING:
    from factbook.auth.tokens import StoredToken
    from factbook.auth.users import Person
    from factbook.operations.erasure import ErasureReport


people_app = typer.Typer(
    no_args_is_help=True,
    help="List, invite and erase the people who sign in, and reset their passwords.",
    epilog=EXIT_CODES,
)

ServiceAddress = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="Address that the link begins with. Default: public_url, or host and port.",
    ),
]

tokens_app = typer.Typer(
    no_args_is_help=True, help="Create, list and revoke API tokens.", epilog=EXIT_CODES
)

audit_app = typer.Typer(no_args_is_help=True, help="Who did what, and what was refused.")


@people_app.command("list", epilog=EXIT_CODES)
def print_people(database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List everyone who has an account, including those who are disabled.

    \b
    Examples:
      factbook people list
      factbook people list --json
    """
    from factbook.operations import commands

    found = run_on_database(database_url, commands.list_people)
    columns = ["Name", "Full name", "Role", "State", "Signs in with", "Last sign-in"]
    print_answer(list(map(_person_json, found)), columns, map(_person_row, found), as_json=as_json)


@people_app.command("invite", epilog=EXIT_CODES)
def invite_person(
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
    server: ServiceAddress = None,
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

    link, given = run_on_new_database(
        database_url, commands.make_invitation, name, role, server, confirmed=confirm
    )
    print_note(
        f"The person who opens this link becomes {given}, once, within three days. "
        "It is not shown again."
    )
    say(link)


@people_app.command("confirm", epilog=EXIT_CODES)
def confirm_account(
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

    done = run_on_database(database_url, commands.confirm_person, name, user_name)
    scim = f" and the SCIM user {done.user_name}" if done.user_name else ""
    print_note(f"The account {name} is the catalog's user {done.ref}{scim}.")


@people_app.command("add", epilog=EXIT_CODES)
def add_account(
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

    account = NewAccount(name, role, subject)
    done = run_on_new_database(database_url, commands.add_person, account)
    print_note(f"{done.ref} can sign in now, as {done.role}.")


@people_app.command("reset", epilog=EXIT_CODES)
def print_reset_link(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name the person signs in with.")],
    server: ServiceAddress = None,
    database_url: DatabaseUrl = None,
) -> None:
    """Print a link with which a person sets a new password. It works once, within three days.

    The current password works until then.

    \b
    Examples:
      factbook people reset kim
    """
    from factbook.operations import commands

    link = run_on_database(database_url, commands.make_reset_link, name, server)
    print_note(
        f"The person who opens this link sets the password of {name}. It is not shown again."
    )
    say(link)


@people_app.command("erase", epilog=EXIT_CODES)
def erase_account(
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
        if yes:
            return
        with suppress(typer.Abort):
            if typer.confirm(f"Erase {report.ref} in {report.total} records for good?", err=True):
                return
        raise CommandError("Erasure canceled. Use --yes to skip the question.")

    done = run_on_database(database_url, commands.erase_person, name, None if dry_run else agree)
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
        print_note("Dry run: no records were changed.")
    else:
        print_note(f"Erased {done.ref}. The remaining records use the pseudonym {done.pseudonym}.")


def _person_row(person: "Person") -> tuple[object, ...]:
    return (
        person.name,
        person.display_name,
        person.role,
        "active" if person.disabled_at is None else "disabled",
        person.issuer or ("password" if person.has_password else "nothing yet"),
        format_age(person.signed_in_at) or "never",
    )


def _person_json(person: "Person") -> dict[str, Any]:
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


@tokens_app.command("create", epilog=EXIT_CODES)
def print_new_token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the token is for.")],
    permission: Annotated[
        list[str] | None,
        typer.Option(help="A permission, e.g. catalog.entity.read. May be repeated."),
    ] = None,
    preset: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="The permissions for a purpose: ask, push, pipeline, author or scim. May be "
            "repeated. Without --preset, --permission and --all: ask, which only reads.",
        ),
    ] = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Every permission, managing tokens and people included.")
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME", help="A set that it may push; a* for all from a."),
    ] = None,
    namespace: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A namespace whose entities it may write."),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A data source that it may read, run and push to."),
    ] = None,
    tool: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A tool that it may call.")
    ] = None,
    user: Annotated[
        str, typer.Option(metavar="REF", help="The user in whose name the token acts.")
    ] = "user:default/admin",
    expires: Annotated[
        str, typer.Option(metavar="TIME", help="Lifetime of the token: 90d, 12h, ... or never.")
    ] = "90d",
    database_url: DatabaseUrl = None,
) -> None:
    """Create a token and print its value, which is shown only once.

    \b
    Examples:
      export FACTBOOK_TOKEN=$(factbook token create laptop)
      factbook token create ci --preset push --set "shop-*"
      factbook token create auditor --permission audit.read --expires 1d
      factbook token create administrator --all --expires 1d
    """
    from factbook.operations import commands

    wanted = commands.token_permissions(permission or [], preset or [], everything=all_)
    asked = {"sets": set_, "namespaces": namespace, "sources": source, "tools": tool}
    narrowed = {dimension: names for dimension, names in asked.items() if names}
    value = run_on_new_database(
        database_url, commands.create_token, name, user, wanted, expires, narrowed
    )
    print_note(
        f'The token "{name}" acts for {user}, expires: {expires}. Keep it: it is not shown again.'
    )
    print_note(f"Permissions: {'all' if all_ else ', '.join(sorted(wanted))}")
    say(value)


@tokens_app.command("list", epilog=EXIT_CODES)
def print_tokens(database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List the tokens that are not revoked, without their values.

    \b
    Examples:
      factbook token list
      factbook token list --json
    """
    from factbook.operations import commands

    tokens = run_on_database(database_url, commands.list_tokens)
    columns = ["Id", "Name", "User", "State", "Created", "Expires", "Last used", "Permissions"]
    columns.append("Narrowed to")
    print_answer(list(map(_token_json, tokens)), columns, map(_token_row, tokens), as_json=as_json)


@tokens_app.command("revoke", epilog=EXIT_CODES)
def revoke_named_token(
    token: Annotated[str, typer.Argument(metavar="ID_OR_NAME", help="The token's id or name.")],
    database_url: DatabaseUrl = None,
) -> None:
    """Revoke a token; it is refused from the next request on.

    \b
    Examples:
      factbook token revoke laptop
    """
    from factbook.operations import commands

    name = run_on_database(database_url, commands.revoke_token, token)
    say(f"Revoked: {name}")


def _token_row(token: "StoredToken") -> tuple[object, ...]:
    expired = token.expires_at is not None and token.expires_at <= now()
    restrictions = {} if token.narrowing is None else token.narrowing.given
    return (
        token.id,
        token.name,
        token.owner,
        "expired" if expired else "valid",
        format_age(token.created_at),
        format_age(token.expires_at) or "never",
        format_age(token.last_used_at),
        ", ".join(sorted(token.permissions)),
        "; ".join(f"{dimension}: {', '.join(names)}" for dimension, names in restrictions.items()),
    )


def _token_json(token: "StoredToken") -> dict[str, Any]:
    return {
        "id": token.id,
        "name": token.name,
        "owner": token.owner,
        "permissions": sorted(token.permissions),
        "createdAt": iso_or_none(token.created_at),
        "expiresAt": iso_or_none(token.expires_at),
        "lastUsedAt": iso_or_none(token.last_used_at),
        "narrowing": None if token.narrowing is None else token.narrowing.given,
    }


@audit_app.callback()
def _audit_group() -> None:
    """Export the audit of actions and refusals."""


@audit_app.command("export", epilog=EXIT_CODES)
def print_audit(
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only from this time on: ISO 8601 with a UTC offset."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="Only up to and including this time.")
    ] = None,
    after: Annotated[
        str | None,
        typer.Option(metavar="CURSOR", help="Only after the line with this cursor."),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Continue until stopped, printing each record five minutes after it was made: "
            "none is missed that way.",
        ),
    ] = False,
    database_url: DatabaseUrl = None,
) -> None:
    """Print the audit as JSON lines, the oldest record first.

    \b
    Examples:
      factbook audit export --since 2026-11-01T00:00:00Z > november.jsonl
      factbook audit export --follow --after 1795262400000/0000000012345678
    """
    from factbook.operations import commands

    if follow and until is not None:
        raise InputError("--follow does not end: leave out --until.")
    begin, end = _parse_moment("--since", since), _parse_moment("--until", until)
    with until_enough():
        run_on_database(
            database_url, commands.export_audit, _write_lines, after,
            since=begin, until=end, follow=follow, warn=print_note,
        )  # fmt: skip


def _write_lines(lines: bytes) -> None:
    sys.stdout.buffer.write(lines)
    sys.stdout.buffer.flush()


def _parse_moment(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    moment = milliseconds(text)
    if moment is None:
        raise InputError(f'{name} is a time such as 2026-11-01T00:00:00Z, not "{text}".')
    return moment
