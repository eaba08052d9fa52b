"""Commands for pipelines: what files would change, as a comment, too, and who has a level."""

from typing import Annotated

import typer

from factbook.cli.connection import DEFAULT_SERVER, Server, Token, connected
from factbook.cli.failures import CommandError
from factbook.cli.output import Json, note, print_json
from factbook.errors import InputError

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
        help="Files of checks, of YAML or JSON, or directories with them; - is stdin.",
    ),
]
WorkingTree = Annotated[
    str | None,
    typer.Option("--path", metavar="DIR", help="A working tree with files of entities."),
]
CatalogFiles = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE",
        help="A file of the tree with entities beside catalog-info.yaml; may be repeated.",
    ),
]
NamedSet = Annotated[
    str | None,
    typer.Option(
        "--set",
        metavar="NAME",
        help="The set of the tree's entities, of which stored values may be told.",
    ),
]
PreviewedEntities = Annotated[
    list[str] | None,
    typer.Option(metavar="REF", help="Files of checks: only for this one; may be repeated."),
]


def preview(
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
    """Show what files would change: which entities would pass, fail, or be unknown.

    With files of checks, for all entities; with --path, for the entities of a working tree and the
    checks of the server. What rests on facts from elsewhere is told, and is no failure of the tree.
    Nothing is written. Exit code 1 means that an entity would fail which does not fail now; with
    --path, a required check. 2 means that something cannot be read, and was left out.

    \b
    Examples:
      factbook checks preview checks/
      factbook checks preview has-runbook.yaml --entity payments
      factbook checks preview --path . --markdown >> $GITHUB_STEP_SUMMARY
    """
    from factbook.catalog.ref import parse
    from factbook.cli.checks import files, previews, tree_preview, working_tree
    from factbook.cli.checks.preview_report import PreviewReport

    refs = [str(parse(one, kind="component")) for one in entity or []]
    if path is None and not places:
        raise InputError("Give files of checks, or a working tree with --path.")
    for option, told in (("--catalog", catalog), ("--set", set_)) if path is None else ():
        if told:
            raise InputError(f"{option} is about the tree that --path names.")
    read = files.read(places) if places else []
    tree = None if path is None else working_tree.content(path, catalog or [])
    with connected(context, server, token) as client:
        checks = previews.asked(client, read, refs)
        report = PreviewReport(
            checks, None if tree is None else tree_preview.asked(client, tree, set_)
        )
    report.show(markdown=markdown, as_json=as_json)
    report.refuse()


def gate(
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

    Exit code 0 means that it has this level or a higher one, 1 that it has not; what is missing for
    the next level is shown. A check that is unknown keeps it from a level, as one that fails does.

    \b
    Examples:
      factbook checks gate --entity payments --scorecard readiness --level silver
      factbook checks gate --entity payments --scorecard readiness --level gold --if-known
    """
    from factbook.catalog.ref import parse
    from factbook.cli.checks import level_gate

    ref = str(parse(entity, kind="component"))
    with connected(context, server, token) as client:
        result = level_gate.asked(client, ref, scorecard, level, if_known=if_known)
    if as_json:
        print_json(result.as_json())
    else:
        level_gate.show(result)
    if not result.passed:
        raise CommandError(f"{ref} does not have the level {level} of {scorecard}.")


def comment(
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
    from factbook.cli.checks import review_comment

    text = review_comment.read(report)
    done = review_comment.write(review_comment.current(), text, context.obj)
    note(f"The comment is {done}.")
