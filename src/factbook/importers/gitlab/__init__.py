"""Importer of GitLab groups: projects, groups and members."""

from typing import Final

from msgspec.structs import replace

from factbook.errors import ConfigurationError
from factbook.importers.gitlab import group
from factbook.importers.gitlab.options import GitlabImportOptions
from factbook.importers.importer import ImporterKind, ReadingContext, Show
from factbook.importers.snapshot import Snapshot
from factbook.integrations.gitlab.api import GitlabApi
from factbook.integrations.gitlab.options import GitlabOptions


async def _read(reading: ReadingContext, options: GitlabImportOptions, show: Show) -> Snapshot:
    api = GitlabApi(reading.client, reading.account, reading.memory, reading.now)
    return await group.read(api, options, show)


def _completed(options: GitlabImportOptions, account: GitlabOptions) -> GitlabImportOptions:
    groups = options.groups or tuple(account.groups)
    if not groups:
        raise ConfigurationError("Name a group: --group acme.")
    return replace(options, groups=groups)


IMPORTER: Final = ImporterKind(
    id="gitlab",
    title="GitLab",
    options=GitlabImportOptions,
    read=_read,
    vendor="gitlab",
    by_people=True,
    file_page="-/blob/HEAD/{}",
    completed=_completed,
)
