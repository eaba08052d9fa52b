"""Importer of GitHub organizations: repositories, teams and members."""

from functools import partial
from typing import Final

from factbook.importers.code_host.kind import completed, with_api
from factbook.importers.github import events, hinted_repositories, organization
from factbook.importers.github.options import GithubImportOptions
from factbook.importers.importer import ImporterKind
from factbook.integrations.github.graphql import GithubApi

IMPORTER: Final = ImporterKind(
    id="github",
    title="GitHub",
    options=GithubImportOptions,
    makes=("component", "group", "user"),
    read=with_api(GithubApi, organization.read),
    vendor="github",
    account_options=(
        "host",
        "token",
        "app_id",
        "installation_id",
        "private_key",
        "api_url",
        "graphql_url",
    ),
    owners="organizations",
    by_people=True,
    file_page="blob/HEAD/{}",
    completed=partial(completed, name="organizations", flag="--org"),
    events=events.events,
    reread=with_api(GithubApi, hinted_repositories.reread),
)
