"""`factbook checks starter`: the starter scorecard, as files or as drafts on a server."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from factbook.cli.connection import DEFAULT_SERVER, Server, Token, connected
from factbook.cli.output import note, say

if TYPE_CHECKING:
    from factbook.schemas.checks import StarterCheck

_PATH: Final = "/api/tech-insights/v1/starter-scorecard"


def starter(
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
    from factbook.cli.checks import takeovers
    from factbook.client.calls import get, send
    from factbook.schemas.checks import AdoptedStarter, StarterDocuments

    with connected(context, server, token) as client:
        if adopt:
            adopted = client.send(send("POST", _PATH, AdoptedStarter))
            say(f"{len(adopted.made)} drafts are made, {len(adopted.kept)} were there before.")
            _tell(adopted.missing)
            return
        found = client.send(get(_PATH, StarterDocuments))
    checks = [DefinitionDocument("check", one) for one in found.checks]
    cards = [DefinitionDocument("scorecard", one) for one in found.scorecards]
    takeovers.write_all([*checks, *cards], to)
    _tell(found.missing)


def _tell(missing: Sequence["StarterCheck"]) -> None:
    for one in missing:
        note(f"Left out: {one.check}, as no data source has {one.fact}.")
