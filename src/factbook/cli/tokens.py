"""`factbook token`: API tokens, managed on the database itself."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from factbook.cli.failures import EXIT_CODES
from factbook.cli.local import DatabaseUrl, on_database
from factbook.cli.output import Json, age, note, print_answer, say
from factbook.clock import iso_or_none, now

if TYPE_CHECKING:
    from factbook.auth.tokens import StoredToken

app = typer.Typer(
    no_args_is_help=True, help="Create, list and revoke API tokens.", epilog=EXIT_CODES
)


@app.command(epilog=EXIT_CODES)
def create(
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
    value = on_database(database_url, commands.create_token, name, user, wanted, expires, narrowed)
    note(f'The token "{name}" acts for {user}, expires: {expires}. Keep it: it is not shown again.')
    note(f"Permissions: {'all' if all_ else ', '.join(sorted(wanted))}")
    say(value)


@app.command("list", epilog=EXIT_CODES)
def list_(database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List the tokens that are not revoked, without their values.

    \b
    Examples:
      factbook token list
      factbook token list --json
    """
    from factbook.operations import commands

    tokens = on_database(database_url, commands.list_tokens)
    columns = ["Id", "Name", "User", "State", "Created", "Expires", "Last used", "Permissions"]
    columns.append("Narrowed to")
    print_answer(list(map(_as_json, tokens)), columns, map(_row, tokens), as_json=as_json)


@app.command(epilog=EXIT_CODES)
def revoke(
    token: Annotated[str, typer.Argument(metavar="ID_OR_NAME", help="The token's id or name.")],
    database_url: DatabaseUrl = None,
) -> None:
    """Revoke a token; it is refused from the next request on.

    \b
    Examples:
      factbook token revoke laptop
    """
    from factbook.operations import commands

    name = on_database(database_url, commands.revoke_token, token)
    say(f"Revoked: {name}")


def _row(token: "StoredToken") -> tuple[object, ...]:
    return (
        token.id,
        token.name,
        token.owner,
        _state(token),
        age(token.created_at),
        age(token.expires_at) or "never",
        age(token.last_used_at),
        ", ".join(sorted(token.permissions)),
        _narrowed(token),
    )


def _narrowed(token: "StoredToken") -> str:
    given = {} if token.narrowing is None else token.narrowing.given
    return "; ".join(f"{dimension}: {', '.join(names)}" for dimension, names in given.items())


def _state(token: "StoredToken") -> str:
    expired = token.expires_at is not None and token.expires_at <= now()
    return "expired" if expired else "valid"


def _as_json(token: "StoredToken") -> dict[str, Any]:
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
