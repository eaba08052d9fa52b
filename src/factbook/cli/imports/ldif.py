"""`factbook import ldif`: people and groups that a directory exported."""

from pathlib import Path
from typing import Annotated, Any

import typer

from factbook.cli.imports.report import Chosen, Plan, import_chosen
from factbook.cli.local import DatabaseUrl
from factbook.cli.output import Json

File = Annotated[Path, typer.Argument(metavar="FILE", help="LDIF file.")]
EntityNamespace = Annotated[
    str, typer.Option("--namespace", metavar="NAME", help="Namespace of the users and groups.")
]
Instance = Annotated[
    str, typer.Option(metavar="NAME", help="Name of the import, which is part of its sets.")
]


def ldif(
    file: File,
    *,
    namespace: EntityNamespace = "default",
    people: Annotated[bool, typer.Option("--people/--no-people", help="Import people.")] = True,
    groups: Annotated[bool, typer.Option("--groups/--no-groups", help="Import groups.")] = True,
    plan: Plan = False,
    instance: Instance = "default",
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Import the people and groups of an LDIF file, as users and groups.

    A file that does not end with an empty line counts as cut off, and removes nothing.

    \b
    Examples:
      factbook import ldif people.ldif --plan
      ldapsearch -x -b dc=example,dc=org > people.ldif && factbook import ldif people.ldif
    """
    chosen: dict[str, Any] = {
        "path": str(file.absolute()),
        "namespace": namespace,
        "people": people,
        "groups": groups,
    }
    import_chosen(Chosen("ldif", chosen, instance), database_url, plan=plan, as_json=as_json)
