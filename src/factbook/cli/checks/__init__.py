"""`factbook checks`: checks, scorecards and exemptions as code."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from factbook.cli.checks import questions
from factbook.cli.checks.questions import Places
from factbook.cli.checks.starter import starter
from factbook.cli.connection import DEFAULT_SERVER, Server, Token, confirm, connected
from factbook.cli.failures import EXIT_CODES, PLAN_CODES, CommandError
from factbook.cli.output import Json, note, print_json, progress
from factbook.cli.sections import Sections

if TYPE_CHECKING:
    from factbook.cli.definition_plan import PlanStep
    from factbook.client import Client

app = typer.Typer(cls=Sections, no_args_is_help=True)

Draft = Annotated[bool, typer.Option("--draft", help="Save as drafts, which give no results.")]
Prune = Annotated[
    bool, typer.Option("--prune", help="Delete checks and scorecards that are in no file.")
]
Approve = Annotated[
    bool, typer.Option("--approve", help="Approve exemptions that others asked for by these files.")
]
Revoke = Annotated[
    bool,
    typer.Option(
        "--revoke",
        help="Revoke exemptions that are in no file, and ask anew for those that differ.",
    ),
]
Peer = Literal["backstage", "rhdh", "roadie"]


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


@app.command(epilog=PLAN_CODES)
def plan(
    context: typer.Context,
    places: Places,
    *,
    draft: Draft = False,
    prune: Prune = False,
    approve: Approve = False,
    revoke: Revoke = False,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Show how checks, scorecards and exemptions of the server differ from files.

    With the results that each check would change. Nothing is written. Exit code 0 means that there
    is nothing to apply.

    \b
    Examples:
      factbook checks plan checks/
      factbook checks plan checks/ scorecards/ --prune || test $? = 5
    """
    from factbook.cli import definition_plan

    with connected(context, server, token) as client:
        steps = _steps(client, places, (draft, prune), (approve, revoke))
    definition_plan.report(steps, as_json=as_json)


@app.command(epilog=EXIT_CODES)
def apply(
    context: typer.Context,
    places: Places,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before writing.")] = False,
    draft: Draft = False,
    prune: Prune = False,
    approve: Approve = False,
    revoke: Revoke = False,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
) -> None:
    """Bring checks, scorecards and exemptions of the server in line with the files.

    First shows what differs, as `plan` does, and asks. Checks and scorecards are published;
    exemptions are asked for, and approved by a run with --approve and the token of somebody else.
    One that is refused does not keep the others from being written; run it again to continue.

    \b
    Examples:
      factbook checks apply checks/
      factbook checks apply checks/ scorecards/ --yes --prune
    """
    from factbook.cli import definition_plan
    from factbook.cli.checks import file_plan

    with connected(context, server, token) as client:
        steps = _steps(client, places, (draft, prune), (approve, revoke))
        definition_plan.show(steps)
        if not steps:
            return
        if not yes:
            confirm()
        run = partial(file_plan.run, client=client, drafts=draft)
        definition_plan.apply(steps, run)


@app.command(epilog=EXIT_CODES)
def export(
    context: typer.Context,
    *,
    to: Annotated[
        Path,
        typer.Option(
            "--to", metavar="DIR", help="Where checks/, scorecards/ and exemptions/ are written."
        ),
    ] = Path(),
    server: Server = DEFAULT_SERVER,
    token: Token = None,
) -> None:
    """Write checks, scorecards and exemptions of the server as files, of which none is replaced.

    What is published is written, or the draft of what never was, and the exemptions that are asked
    for or in force. One without an end is told, as files have to have one.

    \b
    Examples:
      factbook checks export --to tech-insights
    """
    from factbook.checks.document_readers import DefinitionDocument
    from factbook.cli.checks import change_plan, exemption_plan, takeovers

    with connected(context, server, token) as client:
        found = [DefinitionDocument(one.kind, one.document) for one in change_plan.every(client)]
        exemptions = list(exemption_plan.every_open(client))
    for one in exemptions:
        if one.until is None:
            note(f"The exemption of {one.entity} from {one.check or one.scorecard} has no end.")
        else:
            found.append(DefinitionDocument("exemption", exemption_plan.document(one)))
    takeovers.write_all(found, to)


app.command(epilog=EXIT_CODES)(starter)
app.command(epilog=EXIT_CODES)(questions.preview)
app.command(epilog=EXIT_CODES)(questions.gate)
app.command(epilog=EXIT_CODES)(questions.comment)


def _steps(
    client: "Client",
    places: list[str],
    definitions: tuple[bool, bool],
    exemptions: tuple[bool, bool],
) -> "list[PlanStep]":
    """Steps that make the server match the files: drafts and pruning, approvals and revocations."""
    from factbook.cli.checks import file_plan, files
    from factbook.cli.checks.exemption_plan import ExemptionOptions

    drafts, prune = definitions
    with progress("Reading") as show:
        read = files.read(places)
        show(f"Comparing {len(read):,} documents")
        options = ExemptionOptions(*exemptions)
        found = file_plan.plan(client, read, options, drafts=drafts, prune=prune)
    for line in found.notes:
        note(line)
    return found.steps


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
    takeovers.write_all(found.documents, to, quiet=as_json)
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
