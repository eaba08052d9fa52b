"""`factbook import github`, `gitlab` and `gitea`: organizations and groups of code hosts."""

from typing import Annotated, Any

import typer

from factbook.cli.imports.report import Chosen, Plan, import_chosen
from factbook.cli.local import DatabaseUrl
from factbook.cli.output import Json

Organizations = Annotated[
    list[str] | None,
    typer.Option("--org", metavar="LOGIN", help="Organization; may be given several times."),
]
Groups = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="PATH", help="Group; may be given several times."),
]
Archived = Annotated[
    bool, typer.Option("--archived", help="Import archived repositories, as deprecated.")
]
Forks = Annotated[bool, typer.Option("--forks", help="Import forks.")]
People = Annotated[bool, typer.Option("--people/--no-people", help="Import teams and members.")]

Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        metavar="NAME",
        help="Namespace of what is imported; without it, everything keeps the one it has.",
    ),
]


def _instance(kind: str) -> Any:
    return typer.Option(
        metavar="NAME", help=f"Table [integrations.{kind}.NAME] with the credential."
    )


def _token(kind: str) -> Any:
    return typer.Option(
        f"--{kind}-token",
        envvar=f"{kind.upper()}_TOKEN",
        show_envvar=True,
        help="Token, if the settings have no such table.",
    )


def _host(whose: str) -> Any:
    return typer.Option(help=f"{whose}, if the settings have no such table.")


def github(
    *,
    org: Organizations = None,
    plan: Plan = False,
    archived: Archived = False,
    forks: Forks = False,
    people: People = True,
    namespace: Namespace = None,
    instance: Annotated[str, _instance("github")] = "default",
    token: Annotated[str | None, _token("github")] = None,
    host: Annotated[str, _host("Host of GitHub")] = "github.com",
    database_url: DatabaseUrl = None,
    as_json: Json = False,
) -> None:
    """Import the repositories, teams and members of GitHub organizations.

    Repositories with a catalog-info.yaml bring its entities, others a component each. Entities that
    a push owns stay as they are. Many removals at once wait: see `factbook import apply`.

    \b
    Examples:
      export GITHUB_TOKEN=...
      factbook import github --org acme --plan
      factbook import github --org acme
    """
    options = {"archived": archived, "forks": forks, "people": people, "namespace": namespace}
    chosen = _chosen("github", instance, token, host, organizations=org or None, **options)
    import_chosen(chosen, database_url, plan=plan, as_json=as_json)


def gitlab(
    *,
    group: Groups = None,
    plan: Plan = False,
    archived: Archived = False,
    forks: Forks = False,
    people: People = True,
    namespace: Namespace = None,
    instance: Annotated[str, _instance("gitlab")] = "default",
    token: Annotated[str | None, _token("gitlab")] = None,
    host: Annotated[str, _host("Host of GitLab")] = "gitlab.com",
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
    options = {"archived": archived, "forks": forks, "people": people, "namespace": namespace}
    chosen = _chosen("gitlab", instance, token, host, groups=group or None, **options)
    import_chosen(chosen, database_url, plan=plan, as_json=as_json)


def gitea(
    *,
    org: Organizations = None,
    plan: Plan = False,
    archived: Archived = False,
    forks: Forks = False,
    people: People = True,
    namespace: Namespace = None,
    instance: Annotated[str, _instance("gitea")] = "default",
    token: Annotated[str | None, _token("gitea")] = None,
    host: Annotated[str, _host("Its host")] = "",
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
    options = {"archived": archived, "forks": forks, "people": people, "namespace": namespace}
    chosen = _chosen("gitea", instance, token, host, organizations=org or None, **options)
    import_chosen(chosen, database_url, plan=plan, as_json=as_json)


def _chosen(kind: str, instance: str, token: str | None, host: str, **options: Any) -> Chosen:
    """The import from a code host that a command describes; an option that is None is not given."""
    given = {name: value for name, value in options.items() if value is not None}
    account = {"token": token, "host": host} if token else None
    return Chosen(kind, given, instance, account, f"{kind.upper()}_TOKEN")
