"""`factbook import gitlab`: groups of GitLab."""

from typing import Annotated

import typer

from factbook.cli.imports.code_hosts import Archived, Forks, People, chosen_host
from factbook.cli.imports.report import Plan, import_chosen
from factbook.cli.local import DatabaseUrl
from factbook.cli.output import Json

Groups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="PATH", help="Group; may be given several times."),
]
Instance = Annotated[
    str,
    typer.Option(metavar="NAME", help="Table [integrations.gitlab.NAME] with the credential."),
]
GitlabToken = Annotated[
    str | None,
    typer.Option(
        "--gitlab-token",
        envvar="GITLAB_TOKEN",
        show_envvar=True,
        help="Token, if the settings have no such table.",
    ),
]
Host = Annotated[str, typer.Option(help="Host of GitLab, if the settings have no such table.")]


def gitlab(
    *,
    group: Groups = None,
    plan: Plan = False,
    archived: Archived = False,
    forks: Forks = False,
    people: People = True,
    instance: Instance = "default",
    token: GitlabToken = None,
    host: Host = "gitlab.com",
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Import the projects, subgroups and members of GitLab groups.

    Projects with a catalog-info.yaml bring its entities, others a component each. Entities that
    a push owns stay as they are. Many removals at once wait: see `factbook import apply`.

    \b
    Examples:
      export GITLAB_TOKEN=...
      factbook import gitlab --group acme --plan
      factbook import gitlab --group acme/web --host gitlab.example.com
    """
    options = {"archived": archived, "forks": forks, "people": people, "groups": group or None}
    chosen = chosen_host("gitlab", instance, token, host, **options)
    import_chosen(chosen, database_url, plan=plan, as_json=as_json)
