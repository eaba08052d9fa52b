"""Commands that ask a server about checks: what files would change, and who has a level."""

from typing import Annotated

import typer

from factbook.cli.connection import DEFAULT_SERVER, Server, Token, connected
from factbook.cli.failures import CommandError
from factbook.cli.output import Json, print_json, say

Places = Annotated[
    list[str],
    typer.Argument(
        metavar="DIR|FILE", help="Files of YAML or JSON, or directories with them; - is stdin."
    ),
]


def preview(
    context: typer.Context,
    places: Places,
    *,
    entity: Annotated[
        list[str] | None, typer.Option(metavar="REF", help="Only for this one; may be repeated.")
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown for a pull request.")
    ] = False,
    server: Server = DEFAULT_SERVER,
    token: Token = None,
    as_json: Json = False,
) -> None:
    """Show what the checks of files would change: which entities would pass, fail, be unknown.

    Nothing is written. Exit code 1 means that an entity would fail which does not fail now.

    \b
    Examples:
      factbook checks preview checks/
      factbook checks preview has-runbook.yaml --entity payments
      factbook checks preview checks/ --markdown >> $GITHUB_STEP_SUMMARY
    """
    from factbook.catalog.ref import parse
    from factbook.cli.checks import files, previews

    refs = [str(parse(one, kind="component")) for one in entity or []]
    read = files.read(places)
    with connected(context, server, token) as client:
        found = previews.asked(client, read, refs)
    if as_json:
        print_json([one.as_json() for one in found])
    else:
        for line in previews.markdown(found) if markdown else previews.lines(found):
            say(line)
    if failures := [one.id for one in found if one.failures]:
        raise CommandError(f"Entities would newly fail: {', '.join(failures)}.")


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
