"""`factbook import gitea`: organizations of Gitea and Forgejo."""

from typing import Annotated, Any

import typer

from factbook.cli.imports.code_hosts import Archived, Forks, Organizations, People
from factbook.cli.imports.report import Chosen, Plan, import_chosen
from factbook.cli.local import DatabaseUrl
from factbook.cli.output import Json

Instance = Annotated[
    str,
    typer.Option(metavar="NAME", help="Table [integrations.gitea.NAME] with the credential."),
]
GiteaToken = Annotated[
    str | None,
    typer.Option(
        "--gitea-token",
        envvar="GITEA_TOKEN",
        show_envvar=True,
        help="Token, if the settings have no such table.",
    ),
]
Host = Annotated[str, typer.Option(help="Its host, if the settings have no such table.")]


def gitea(
    *,
    org: Organizations = None,
    plan: Plan = False,
    archived: Archived = False,
    forks: Forks = False,
    people: People = True,
    instance: Instance = "default",
    token: GiteaToken = None,
    host: Host = "",
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Import the repositories, teams and members of Gitea or Forgejo organizations.

    Repositories with a catalog-info.yaml bring its entities, others a component each. Entities
    that a push owns stay as they are. Many removals at once wait: see `factbook import apply`.

    \b
    Examples:
      export GITEA_TOKEN=...
      factbook import gitea --org acme --host git.example.com --plan
      factbook import gitea --org acme --host git.example.com
    """
    chosen: dict[str, Any] = {"archived": archived, "forks": forks, "people": people}
    if org:
        chosen["organizations"] = tuple(org)
    account = {"token": token, "host": host} if token else None
    given = Chosen("gitea", chosen, instance, account, "GITEA_TOKEN")
    import_chosen(given, database_url, plan=plan, as_json=as_json)
