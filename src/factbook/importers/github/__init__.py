"""Importer of GitHub organizations: repositories, teams and members."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from factbook.errors import ConfigurationError
from factbook.importers.github import events, hinted_repositories, organization
from factbook.importers.github.options import GithubImportOptions
from factbook.importers.importer import ImporterKind, ReadingContext, Show
from factbook.importers.snapshot import Snapshot
from factbook.integrations.github.graphql import GithubApi
from factbook.integrations.github.options import GithubOptions


async def _read(reading: ReadingContext, options: GithubImportOptions, show: Show) -> Snapshot:
    api = GithubApi(reading.client, reading.account, reading.memory, reading.now)
    return await organization.read(api, options, show)


async def _reread(
    reading: ReadingContext, options: GithubImportOptions, hints: Sequence[str]
) -> Snapshot:
    api = GithubApi(reading.client, reading.account, reading.memory, reading.now)
    return await hinted_repositories.reread(api, options, hints)


def _completed(options: GithubImportOptions, account: GithubOptions) -> GithubImportOptions:
    organizations = options.organizations or tuple(account.organizations)
    if not organizations:
        raise ConfigurationError("Name an organization: --org acme.")
    return replace(options, organizations=organizations)


IMPORTER: Final = ImporterKind(
    id="github",
    title="GitHub",
    options=GithubImportOptions,
    read=_read,
    vendor="github",
    by_people=True,
    file_page="blob/HEAD/{}",
    completed=_completed,
    events=events.events,
    reread=_reread,
)
