"""Shared parts of commands that work on the database itself, without a server."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from factbook.settings import Settings

DatabaseUrl = Annotated[
    str | None,
    typer.Option(
        "--database-url",
        help="Where everything is stored: sqlite:///PATH or postgresql://... "
        "FACTBOOK_DATABASE_URL and factbook.toml say it too.",
    ),
]


def settings_from(database_url: str | None, **flags: object) -> "Settings":
    """The settings in force, with these flags above file and environment."""
    # Not needed for `--help`, whose time counts.
    from factbook.settings import load

    return load({"database_url": database_url, **flags})
