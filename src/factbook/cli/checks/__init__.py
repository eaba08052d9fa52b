"""`factbook checks`: checks, scorecards and exemptions as code."""

from pathlib import Path
from typing import Annotated

import typer

from factbook.cli.failures import EXIT_CODES, CommandError
from factbook.cli.output import Json, note, print_json
from factbook.cli.sections import Sections

app = typer.Typer(cls=Sections, no_args_is_help=True)

Places = Annotated[
    list[str],
    typer.Argument(
        metavar="DIR|FILE", help="Files of YAML or JSON, or directories with them; - is stdin."
    ),
]


@app.callback(epilog=EXIT_CODES)
def checks() -> None:
    """Define checks, scorecards and exemptions in files.

    \b
    Examples:
      factbook checks new has-runbook
      factbook checks test checks/
    """


@app.command(epilog=EXIT_CODES)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Id of the check.")],
) -> None:
    """Write the file NAME.yaml: a check to edit, with comments that say how, and its tests.

    \b
    Examples:
      factbook checks new has-runbook
      factbook checks new protected-branch
    """
    from factbook.cli.checks.skeleton import skeleton
    from factbook.cli.definition_files import write

    file = Path(f"{name}.yaml")
    text = skeleton(name)
    write(file, text)
    note(f"Edit it, then run its tests: factbook checks test {file}")


@app.command("test", epilog=EXIT_CODES)
def try_(places: Places, as_json: Json = False) -> None:
    """Run the tests that checks carry, without a server.

    Each check needs a test that passes, one that fails and, if it can be, one that is unknown.
    Exit code 1 means that a test has another result, or that one is missing; 2 that a file cannot
    be read.

    \b
    Examples:
      factbook checks test checks/
      factbook checks test has-runbook.yaml --json
    """
    from factbook import clock
    from factbook.cli.checks import files, trials

    read = files.read(places)
    found = [trials.tried(one.check, clock.now()) for one in read if one.check is not None]
    if as_json:
        print_json([trials.as_json(one) for one in found])
    else:
        for one in found:
            trials.show(one)
    if failed := [one.check.id for one in found if one.failed]:
        raise CommandError(f"Tests have other results, or are missing: {', '.join(failed)}.")
