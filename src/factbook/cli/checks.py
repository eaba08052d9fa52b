"""`factbook checks`: checks, scorecards and exemptions as code, and commands for pipelines."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from factbook.cli.command_parts import (
    DEFAULT_SERVER,
    EXIT_CODES,
    PLAN_CODES,
    CommandError,
    Json,
    Sections,
    Server,
    Token,
    confirm_writing,
    connect_server,
    print_json,
    print_note,
    say,
    show_progress,
)
from factbook.errors import InputError

if TYPE_CHECKING:
    from factbook.cli.definitions import PlanStep
    from factbook.client import Client
    from factbook.schemas.checks import StarterCheck


Places = Annotated[
    list[str],
    typer.Argument(
        metavar="DIR|FILE", help="Files of YAML or JSON, or directories with them; - is stdin."
    ),
]

CheckPlaces = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DIR|FILE",
        help="Check files in YAML or JSON, or directories of them; - is stdin.",
    ),
]
WorkingTree = Annotated[
    str | None,
    typer.Option("--path", metavar="DIR", help="A working tree with entity files."),
]
CatalogFiles = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="Another file of the tree with entities, besides catalog-info.yaml; may be repeated.",
    ),
]
NamedSet = Annotated[
    str | None,
    typer.Option(
        "--set",
        metavar="NAME",
        help="The set of the tree's entities; their stored values may be shown.",
    ),
]
PreviewedEntities = Annotated[
    list[str] | None,
    typer.Option(metavar="REF", help="Preview check files only for this entity; may be repeated."),
]

_STARTER_PATH: Final = "/api/tech-insights/v1/starter-scorecard"

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


def preview_results(
    context: typer.Context,
    places: CheckPlaces = None,
    *,
    path: WorkingTree = None,
    catalog: CatalogFiles = None,
    set_: NamedSet = None,
    entity: PreviewedEntities = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown for a pull request.")
    ] = False,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Show how files would change results: what would pass, fail or be unknown.

    Check files are previewed for all entities; with --path, the entities of a working tree are
    previewed with the checks of the server. Results that depend on facts from elsewhere are marked,
    and don't count as failures of the tree. This writes nothing. Exit code 1 means that an entity
    would newly fail a check; with --path, a required check. Exit code 2 means that something could
    not be read and was left out.

    \b
    Examples:
      factbook checks preview checks/
      factbook checks preview has-runbook.yaml --entity payments
      factbook checks preview --path . --markdown >> $GITHUB_STEP_SUMMARY
    """
    from factbook.catalog.ref import parse_ref
    from factbook.cli import check_previews
    from factbook.cli.check_files import read_check_files
    from factbook.cli.check_previews import PreviewReport

    refs = [str(parse_ref(one, kind="component")) for one in entity or []]
    if path is None and not places:
        raise InputError("Give check files, or a working tree with --path.")
    for option, told in (("--catalog", catalog), ("--set", set_)) if path is None else ():
        if told:
            raise InputError(f"{option} needs --path.")
    read = read_check_files(places) if places else []
    tree = None if path is None else check_previews.collect_tree(path, catalog or [])
    with connect_server(context, server, token) as client:
        checks = check_previews.preview_checks_of(client, read, refs)
        report = PreviewReport(
            checks, None if tree is None else check_previews.preview_tree(client, tree, set_)
        )
    report.show(markdown=markdown, as_json=as_json)
    report.refuse()


def gate_entity(
    context: typer.Context,
    *,
    entity: Annotated[
        str, typer.Option(metavar="REF", help="Entity: name, kind:name or kind:namespace/name.")
    ],
    scorecard: Annotated[str, typer.Option(metavar="ID", help="Id of the scorecard.")],
    level: Annotated[str, typer.Option(metavar="LEVEL", help="The level that it has to have.")],
    if_known: Annotated[
        bool, typer.Option("--if-known", help="Count what is unknown as if it passed.")
    ] = False,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Tell whether an entity has a level of a scorecard, for a pipeline or an agent.

    Exit code 0 means that the entity has this level or a higher one, 1 that it does not. The output
    lists what is missing for the next level. Unknown checks block a level, as failing ones do.

    \b
    Examples:
      factbook checks gate --entity payments --scorecard readiness --level silver
      factbook checks gate --entity payments --scorecard readiness --level gold --if-known
    """
    from factbook.catalog.ref import parse_ref
    from factbook.cli import pipelines

    ref = str(parse_ref(entity, kind="component"))
    with connect_server(context, server, token) as client:
        result = pipelines.check_gate(client, ref, scorecard, level, if_known=if_known)
    if as_json:
        print_json(result.as_json())
    else:
        pipelines.print_gate(result)
    if not result.passed:
        raise CommandError(f"{ref} does not have the level {level} of {scorecard}.")


def comment_on_review(
    context: typer.Context,
    report: Annotated[
        str, typer.Argument(metavar="FILE", help="A report of Markdown; - is standard input.")
    ],
) -> None:
    """Write a report as a comment on the pull or merge request that the pipeline runs for.

    There is one comment: later runs replace it. On GitHub it takes GITHUB_TOKEN and the permission
    pull-requests: write, on GitLab FACTBOOK_COMMENT_TOKEN with the scope api; everything else is in
    the variables that both give to jobs. No server of Factbook is asked.

    \b
    Examples:
      factbook checks preview --path . --markdown > report.md
      factbook checks comment report.md
    """
    from factbook.cli import pipelines

    text = pipelines.read_report(report)
    done = pipelines.write_comment(pipelines.current_review(), text, context.obj)
    print_note(f"The comment is {done}.")


def write_starter(
    context: typer.Context,
    *,
    to: Annotated[
        Path, typer.Option("--to", metavar="DIR", help="Where checks/ and scorecards/ are written.")
    ] = Path(),
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Make drafts on the server, and write no file.")
    ] = False,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
) -> None:
    """Write the starter scorecard as files: checks that the data sources of the server can answer.

    Nothing is in effect before `factbook checks apply`, or before the drafts are published. What is
    there already is not replaced.

    \b
    Examples:
      factbook checks starter --to tech-insights
      factbook checks starter --adopt
    """
    from factbook.checks.document_readers import DefinitionDocument
    from factbook.cli import check_files
    from factbook.client.calls import get_call, send_call
    from factbook.schemas.checks import AdoptedStarter, StarterDocuments

    with connect_server(context, server, token) as client:
        if adopt:
            adopted = client.send(send_call("POST", _STARTER_PATH, AdoptedStarter))
            say(f"{len(adopted.made)} drafts were created, {len(adopted.kept)} existed already.")
            _note_left_out(adopted.missing)
            return
        found = client.send(get_call(_STARTER_PATH, StarterDocuments))
    checks = [DefinitionDocument("check", one) for one in found.checks]
    cards = [DefinitionDocument("scorecard", one) for one in found.scorecards]
    check_files.write_converted([*checks, *cards], to)
    _note_left_out(found.missing)


def _note_left_out(missing: Sequence["StarterCheck"]) -> None:
    for one in missing:
        print_note(f"Left out: {one.check}, as no data source has {one.fact}.")


@app.callback(epilog=EXIT_CODES)
def checks_group() -> None:
    """Define checks, scorecards and exemptions in files.

    \b
    Examples:
      factbook checks new has-runbook
      factbook checks test checks/
      factbook checks import app-config.yaml --from backstage
    """


@app.command("new", epilog=EXIT_CODES)
def new_check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Id of the check.")],
) -> None:
    """Write the file NAME.yaml: a check to edit, with comments that say how, and its tests.

    \b
    Examples:
      factbook checks new has-runbook
      factbook checks new protected-branch
    """
    from factbook.cli.check_files import check_skeleton
    from factbook.cli.definitions import write_new_file

    file = Path(f"{name}.yaml")
    text = check_skeleton(name)
    write_new_file(file, text)
    print_note(f"Edit it, then run its tests: factbook checks test {file}")


@app.command("plan", epilog=PLAN_CODES)
def plan_checks(
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
    from factbook.cli import definitions

    with connect_server(context, server, token) as client:
        steps = _plan_steps(client, places, (draft, prune), (approve, revoke))
    definitions.report_plan(steps, as_json=as_json)


@app.command("apply", epilog=EXIT_CODES)
def apply_checks(
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
    exemptions are requested. To approve them, somebody else runs this with --approve and their own
    token. If the server refuses one item, the others are still written; run it again to continue.

    \b
    Examples:
      factbook checks apply checks/
      factbook checks apply checks/ scorecards/ --yes --prune
    """
    from factbook.cli import definitions
    from factbook.cli.check_files import run_check_step

    with connect_server(context, server, token) as client:
        steps = _plan_steps(client, places, (draft, prune), (approve, revoke))
        definitions.print_plan(steps)
        if not steps:
            return
        if not yes:
            confirm_writing()
        run = partial(run_check_step, client=client, drafts=draft)
        definitions.apply_plan(steps, run)


@app.command("export", epilog=EXIT_CODES)
def export_checks(
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
    """Write the server's checks, scorecards and exemptions to new files.

    Published versions are written, and the drafts of checks and scorecards that were never
    published. Exemptions are written if they are requested or approved; those without an end are
    left out with a note, since files need one. Existing files aren't replaced.

    \b
    Examples:
      factbook checks export --to tech-insights
    """
    from factbook.checks.document_readers import DefinitionDocument
    from factbook.cli import check_files

    with connect_server(context, server, token) as client:
        found = [
            DefinitionDocument(one.kind, one.document)
            for one in check_files.list_stored_definitions(client)
        ]
        exemptions = list(check_files.list_open_exemptions(client))
    for one in exemptions:
        if one.until is None:
            print_note(
                f"Left out: the exemption of {one.entity} from {one.check or one.scorecard} "
                "has no end."
            )
        else:
            found.append(DefinitionDocument("exemption", check_files.exemption_document(one)))
    check_files.write_converted(found, to)


app.command("starter", epilog=EXIT_CODES)(write_starter)
app.command("preview", epilog=EXIT_CODES)(preview_results)
app.command("gate", epilog=EXIT_CODES)(gate_entity)
app.command("comment", epilog=EXIT_CODES)(comment_on_review)


def _plan_steps(
    client: "Client",
    places: list[str],
    definitions: tuple[bool, bool],
    exemptions: tuple[bool, bool],
) -> "list[PlanStep]":
    from factbook.cli.check_files import ExemptionOptions, plan_check_files, read_check_files

    drafts, prune = definitions
    with show_progress("Reading") as show:
        read = read_check_files(places)
        show(f"Comparing {len(read):,} documents")
        options = ExemptionOptions(*exemptions)
        found = plan_check_files(client, read, options, drafts=drafts, prune=prune)
    for line in found.notes:
        print_note(line)
    return found.steps


@app.command("import", epilog=EXIT_CODES)
def import_checks(
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
    server, and no file is replaced. Exit code 1 means that something could not be converted.

    \b
    Examples:
      factbook checks import app-config.yaml --from backstage
      factbook checks import checks.json --from roadie --to tech-insights --source 7f3a=github
    """
    from factbook.cli import check_files

    found = check_files.convert_file(file, from_, source or [])
    check_files.write_converted(found.documents, to, quiet=as_json)
    if as_json:
        print_json(check_files.conversion_json(found))
    else:
        check_files.print_conversion(found)
    if refused := check_files.list_refused_items(found):
        raise CommandError(f"Not converted: {', '.join(refused)}.")


@app.command("test", epilog=EXIT_CODES)
def try_checks(places: Places, as_json: Json = False) -> None:
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
    from factbook.cli import check_files

    read = check_files.read_check_files(places)
    found = [
        check_files.run_check_tests(one.check, clock.now()) for one in read if one.check is not None
    ]
    if as_json:
        print_json([check_files.check_tests_json(one) for one in found])
    else:
        for one in found:
            check_files.print_check_tests(one)
    if failed := [one.check.id for one in found if one.failed]:
        raise CommandError(f"Tests have other results, or are missing: {', '.join(failed)}.")
