"""`factbook checks`: checks, scorecards and exemptions as code."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from factbook.cli.failures import EXIT_CODES, CommandError
from factbook.cli.output import Json, note, print_json
from factbook.cli.sections import Sections

app = typer.Typer(cls=Sections, no_args_is_help=True)

Peer = Literal["backstage", "rhdh", "roadie"]
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
      factbook checks import app-config.yaml --from backstage
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


@app.command("import", epilog=EXIT_CODES)
def import_(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="Their configuration, or their answer; - is stdin."),
    ],
    *,
    from_: Annotated[Peer, typer.Option("--from", help="What the file is of.", show_choices=True)],
    to: Annotated[
        Path, typer.Option("--to", metavar="DIR", help="Where checks/ and scorecards/ are written.")
    ] = Path(),
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="THEIRS=OURS", help="The data source for one of theirs; may be repeated."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write the checks and scorecards of another product as files, and report what is lost.

    `backstage` reads techInsights.factChecker.checks of an app-config, `rhdh` the thresholds of
    scorecard.plugins of one, and `roadie` what its checks and scorecards answer. Nothing goes to a
    server, and no file is replaced. Exit code 1 means that something could not be taken over.

    \b
    Examples:
      factbook checks import app-config.yaml --from backstage
      factbook checks import checks.json --from roadie --to tech-insights --source 7f3a=github
    """
    from factbook.cli.checks import takeovers

    found = takeovers.taken_over(file, from_, source or [])
    takeovers.write_all(found, to, quiet=as_json)
    if as_json:
        print_json(takeovers.as_json(found))
    else:
        takeovers.show(found)
    if refused := takeovers.refused(found):
        raise CommandError(f"Not taken over: {', '.join(refused)}.")


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
