"""`factbook import catalog`: the entities of another catalog."""

from typing import Annotated, Any

import typer

from factbook.cli.imports.report import Chosen, Plan, import_chosen
from factbook.cli.local import DatabaseUrl
from factbook.cli.output import Json

Address = Annotated[
    str,
    typer.Option(metavar="URL", help="Address of the service, above /api/catalog."),
]
Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="KEY=VALUE,...",
        help="Conditions that all hold; given several times, one of the texts has to.",
    ),
]
PeerToken = Annotated[
    str,
    typer.Option(
        "--catalog-token",
        envvar="CATALOG_TOKEN",
        show_envvar=True,
        help="Token that may read entities there.",
    ),
]
Prefix = Annotated[
    str, typer.Option(metavar="TEXT", help="Put before every namespace, also in references.")
]
Instance = Annotated[
    str, typer.Option(metavar="NAME", help="Name of the import, which is part of its sets.")
]


def catalog(
    *,
    address: Address,
    filters: Filters = None,
    namespace_prefix: Prefix = "",
    plan: Plan = False,
    instance: Instance = "default",
    token: PeerToken = "",
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Import the entities of a Backstage, Roadie or other Factbook catalog.

    They keep their references; relations are made anew from them. Entities that a push owns stay as
    they are. Many removals at once wait: see `factbook import apply`.

    \b
    Examples:
      export CATALOG_TOKEN=...
      factbook import catalog --address https://backstage.example.com --plan
      factbook import catalog --address https://backstage.example.com --filter kind=component
    """
    chosen: dict[str, Any] = {
        "address": address,
        "token": token,
        "filters": tuple(filters or ()),
        "namespace_prefix": namespace_prefix,
    }
    import_chosen(Chosen("catalog", chosen, instance), database_url, plan=plan, as_json=as_json)
