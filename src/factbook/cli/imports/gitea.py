"""`factbook import gitea`: organizations of Gitea and Forgejo."""

from typing import Annotated

import typer

from factbook.cli.imports.code_hosts import Archived, Forks, Organizations, People, chosen_host
from factbook.cli.imports.report import Plan, import_chosen
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
    options = {"archived": archived, "forks": forks, "people": people, "organizations": org or None}
    chosen = chosen_host("gitea", instance, token, host, **options)
    import_chosen(chosen, database_url, plan=plan, as_json=as_json)
