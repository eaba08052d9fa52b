"""Options that the imports of all code hosts have."""

from typing import Annotated, Any

import typer

from factbook.cli.imports.report import Chosen

Organizations = Annotated[
    list[str] | None,
    typer.Option("--org", metavar="LOGIN", help="Organization; may be given several times."),
]
Archived = Annotated[
    bool, typer.Option("--archived", help="Import archived repositories, as deprecated.")
]
Forks = Annotated[bool, typer.Option("--forks", help="Import forks.")]
People = Annotated[bool, typer.Option("--people/--no-people", help="Import teams and members.")]


def chosen_host(kind: str, instance: str, token: str | None, host: str, **options: Any) -> Chosen:
    """The import from a code host that a command describes; an option that is None is not given."""
    given = {name: value for name, value in options.items() if value is not None}
    account = {"token": token, "host": host} if token else None
    return Chosen(kind, given, instance, account, f"{kind.upper()}_TOKEN")
