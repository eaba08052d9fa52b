"""Options that the imports of all code hosts have."""

from typing import Annotated

import typer

Organizations = Annotated[
    list[str] | None,
    typer.Option("--org", metavar="LOGIN", help="Organization; may be given several times."),
]
Archived = Annotated[
    bool, typer.Option("--archived", help="Import archived repositories, as deprecated.")
]
Forks = Annotated[bool, typer.Option("--forks", help="Import forks.")]
People = Annotated[bool, typer.Option("--people/--no-people", help="Import teams and members.")]
