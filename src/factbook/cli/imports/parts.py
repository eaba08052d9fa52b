"""Parts that were imported, and decisions on removals that they hold."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any

import typer

from factbook.cli.failures import CommandError
from factbook.cli.imports.part_lines import PART_COLUMNS, part_json, part_name, part_row
from factbook.cli.local import DatabaseUrl, on_database
from factbook.cli.output import Json, age, print_answer, print_json, print_table, say
from factbook.errors import suggestion

if TYPE_CHECKING:
    from factbook.backend import Backend
    from factbook.importers.part_store import ImportPartRecord

PartName = Annotated[
    str, typer.Argument(metavar="PART", help="As listed, e.g. github/acme.repositories.")
]

ShownName = Annotated[
    str,
    typer.Argument(metavar="NAME", help="A part as listed, or the id of an importer, e.g. github."),
]


def list_(database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """List every part that was imported, with the state of its last reading.

    \b
    Examples:
      factbook import list
      factbook import list --json
    """
    from factbook.operations import imports

    found = on_database(database_url, imports.import_parts)
    rows = map(part_row, found)
    print_answer(list(map(part_json, found)), PART_COLUMNS, rows, as_json=as_json)


def show(name: ShownName, database_url: DatabaseUrl = None, as_json: Json = False) -> None:
    """Show an importer with its runs, or the problems and the held removals of a part.

    \b
    Examples:
      factbook import show github
      factbook import show github/acme.repositories --json
    """
    if "/" not in name:
        _show_importer(name, database_url, as_json=as_json)
        return
    part = _shown(name, database_url)
    if as_json:
        print_json(part_json(part))
        return
    say(f"{part_name(part)}: {part.state}, read {age(part.read_at)}")
    for problem in part.problems:
        say(str(problem))
    _show_held(part)


def apply(name: PartName, database_url: DatabaseUrl = None) -> None:
    """Remove the entities whose removal is held, and list them.

    \b
    Examples:
      factbook import apply github/acme.repositories
    """
    from factbook.operations import imports

    _decide(imports.apply_held, name, database_url, "are left")


def discard(name: PartName, database_url: DatabaseUrl = None) -> None:
    """Keep the entities whose removal is held, until they are found and are missing once more.

    \b
    Examples:
      factbook import discard github/acme.repositories
    """
    from factbook.operations import imports

    _decide(imports.discard_held, name, database_url, "stay")


def _decide(
    decision: "Callable[[Backend, str, str], Coroutine[Any, Any, ImportPartRecord]]",
    name: str,
    database_url: str | None,
    result: str,
) -> None:
    """List the held removals of a part, and decide on just these."""
    part = _shown(name, database_url)
    _show_held(part)
    record = on_database(database_url, decision, name, part.tag)
    say(f"{part_name(record)}: {record.items:,} entities {result}.")


def _show_importer(name: str, database_url: str | None, *, as_json: bool) -> None:
    from factbook.cli.imports.importer_lines import importer_json, print_importer
    from factbook.operations import imports

    found = on_database(database_url, imports.importer_detail, name)
    if as_json:
        print_json(importer_json(found))
    else:
        print_importer(found)


def _shown(name: str, database_url: str | None) -> "ImportPartRecord":
    """The part of this name; raises CommandError if there is none."""
    from factbook.operations import imports

    known = {part_name(one): one for one in on_database(database_url, imports.import_parts)}
    found = known.get(name.removeprefix("import/"))
    if found is None:
        raise CommandError(f'There is no part "{name}".{suggestion(name, known)}')
    return found


def _show_held(part: "ImportPartRecord") -> None:
    if part.held:
        say(f"Held, because {part.reason}:")
        print_table(["Entity"], ((ref,) for ref in part.held))
