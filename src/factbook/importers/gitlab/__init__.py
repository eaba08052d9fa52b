"""Importer of GitLab groups: projects, groups and members."""

from functools import partial
from typing import Final

from factbook.importers.code_hosts import complete_options, make_reader
from factbook.importers.gitlab import group
from factbook.importers.gitlab.group import GitlabImportOptions
from factbook.importers.importer import ImporterKind
from factbook.integrations.gitlab.api import GitlabApi

IMPORTER: Final = ImporterKind(
    id="gitlab",
    title="GitLab",
    options=GitlabImportOptions,
    makes=("component", "group", "user"),
    read=make_reader(GitlabApi, group.read_gitlab),
    vendor="gitlab",
    account_options=("host", "token", "api_url"),
    owners="groups",
    by_people=True,
    file_page="-/blob/HEAD/{}",
    completed=partial(complete_options, name="groups", flag="--group"),
)
