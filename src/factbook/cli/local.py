"""Shared parts of commands that work on the database itself, without a server."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TypeVar

import typer

from factbook.cli.output import note

if TYPE_CHECKING:
    from factbook.backend import Backend
    from factbook.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

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
    from factbook.settings.table import load_settings

    return load_settings({"database_url": database_url, **flags})


def service_settings(database_url: str | None, **flags: object) -> "Settings":
    """The settings of a process of the service, which refuses misspelled variables."""
    from factbook.settings.table import refuse_misspelled_variables

    for variable in refuse_misspelled_variables():
        note(f"Warning: the variable {variable} is no setting and is not read.")
    return settings_from(database_url, **flags)


def on_database(
    database_url: str | None,
    work: "Callable[Concatenate[Backend, P], Coroutine[Any, Any, T]]",
    *arguments: P.args,
    **named: P.kwargs,
) -> T:
    """Run a command of `operations.commands` on the database of the settings in force."""
    import asyncio

    # See service.serve.
    from factbook.backend import Backend

    return asyncio.run(work(Backend.of(settings_from(database_url)), *arguments, **named))
