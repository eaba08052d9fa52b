"""Importer of Gitea and Forgejo organizations: repositories, teams and members."""

from typing import Final

from msgspec.structs import replace

from factbook.errors import ConfigurationError
from factbook.importers.gitea import organization
from factbook.importers.gitea.options import GiteaImportOptions
from factbook.importers.importer import ImporterKind, ReadingContext, Show
from factbook.importers.snapshot import Snapshot
from factbook.integrations.gitea.api import GiteaApi
from factbook.integrations.gitea.options import GiteaOptions


async def _read(reading: ReadingContext, options: GiteaImportOptions, show: Show) -> Snapshot:
    api = GiteaApi(reading.client, reading.account, reading.memory, reading.now)
    return await organization.read(api, options, show)


def _completed(options: GiteaImportOptions, account: GiteaOptions) -> GiteaImportOptions:
    organizations = options.organizations or tuple(account.organizations)
    if not organizations:
        raise ConfigurationError("Name an organization: --org acme.")
    return replace(options, organizations=organizations)


IMPORTER: Final = ImporterKind(
    id="gitea",
    title="Gitea or Forgejo",
    options=GiteaImportOptions,
    read=_read,
    vendor="gitea",
    by_people=True,
    file_page="src/branch/HEAD/{}",
    completed=_completed,
)
