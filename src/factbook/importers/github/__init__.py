"""Importer of GitHub organizations: repositories, teams and members."""

from functools import partial
from typing import Final

from factbook.importers.code_hosts import complete_options, make_reader
from factbook.importers.github import organization
from factbook.importers.github.organization import GithubImportOptions
from factbook.importers.importer import ImporterKind
from factbook.integrations.github.api import GithubApi

IMPORTER: Final = ImporterKind(
    id="github",
    title="GitHub",
    options=GithubImportOptions,
    makes=("component", "group", "user"),
    read=make_reader(GithubApi, organization.read_github),
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
    completed=partial(complete_options, name="organizations", flag="--org"),
    events=organization.make_event_rules,
    reread=make_reader(GithubApi, organization.reread_github),
)
