"""Importer of GitLab groups: projects, groups and members."""

from functools import partial
from typing import Final

from factbook.importers.code_host.kind import completed, with_api
from factbook.importers.gitlab import group
from factbook.importers.gitlab.options import GitlabImportOptions
from factbook.importers.importer import ImporterKind
from factbook.integrations.gitlab.api import GitlabApi

IMPORTER: Final = ImporterKind(
    id="gitlab",
    title="GitLab",
    options=GitlabImportOptions,
    makes=("component", "group", "user"),
    read=with_api(GitlabApi, group.read),
    vendor="gitlab",
    account_options=("host", "token", "api_url"),
    owners="groups",
    by_people=True,
    file_page="-/blob/HEAD/{}",
    completed=partial(completed, name="groups", flag="--group"),
)
