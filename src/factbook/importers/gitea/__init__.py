"""Importer of Gitea and Forgejo organizations: repositories, teams and members."""

from functools import partial
from typing import Final

from factbook.importers.code_host.kind import completed, with_api
from factbook.importers.gitea import organization
from factbook.importers.gitea.options import GiteaImportOptions
from factbook.importers.importer import ImporterKind
from factbook.integrations.gitea.api import GiteaApi

IMPORTER: Final = ImporterKind(
    id="gitea",
    title="Gitea or Forgejo",
    options=GiteaImportOptions,
    makes=("component", "group", "user"),
    read=with_api(GiteaApi, organization.read),
    vendor="gitea",
    account_options=("host", "token", "api_url"),
    owners="organizations",
    by_people=True,
    file_page="src/branch/HEAD/{}",
    completed=partial(completed, name="organizations", flag="--org"),
)
