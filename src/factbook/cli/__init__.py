"""The command line: `factbook`.

`factbook serve` with plain flags starts without the command-line parser, as importing the parser
takes longer than opening the database.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from factbook.settings import Settings

# Flags of `serve`, each named after a setting.
_FLAGS: Final[Mapping[str, Callable[[str], object]]] = {
    "--host": str,
    "--port": int,
    "--workers": int,
    "--database-url": str,
}


@contextmanager
def _hidden(*names: str) -> Iterator[None]:
    """Hide these modules from imports inside the block."""
    hidden = [name for name in names if name not in sys.modules]
    # None makes Python refuse to import a module.
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def main() -> None:
    """Run the command in this process's arguments."""
    if (settings := _plain_serve_settings(sys.argv[1:])) is not None:
        _serve_plainly(settings)
        return
    from factbook.cli.commands import app

    app(prog_name="factbook")


def _plain_serve_settings(arguments: Sequence[str]) -> "Settings | None":
    """Settings of a `serve` with plain flags; None for arguments that need the full parser."""
    names, values = arguments[1::2], arguments[2::2]
    is_plain = len(names) == len(values) and _FLAGS.keys() >= set(names)
    if arguments[:1] != ["serve"] or not is_plain or any(one.startswith("-") for one in values):
        return None
    from factbook.errors import ConfigurationError
    from factbook.settings.table import find_unknown_variables, load_settings

    if find_unknown_variables():
        return None
    pairs = zip(names, values, strict=True)
    try:
        return load_settings(
            {name[2:].replace("-", "_"): _FLAGS[name](value) for name, value in pairs}
        )
    except (ValueError, ConfigurationError):
        return None


def _serve_plainly(settings: "Settings") -> None:
    from factbook import process

    process.start_quickly()
    # structlog would import sixty modules to draw tracebacks that the logs don't use.
    with _hidden("rich", "colorama", "greenlet"):
        import_module("structlog")
    from factbook.errors import FactbookError
    from factbook.operations import server

    try:
        server.serve(settings)
    except FactbookError as error:
        from factbook.cli.command_parts import as_command_error

        told = as_command_error(error)
        told.show()
        sys.exit(told.code)
