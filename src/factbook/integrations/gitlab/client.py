"""Collection from a GitLab instance: all projects of a batch, from query to facts."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from factbook.integrations import file_tree
from factbook.integrations.code_host import ANYTHING
from factbook.integrations.file_tree import RepositoryTree
from factbook.integrations.gitlab import facts, projects
from factbook.integrations.gitlab.answers import (
    NO_BRANCH,
    NO_REPOSITORY,
    GitlabTreeEntry,
    ProjectData,
)
from factbook.integrations.gitlab.api import GitlabApi
from factbook.integrations.gitlab.options import GitlabOptions
from factbook.integrations.gitlab.rules import rules
from factbook.integrations.integration import Collected, each
from factbook.integrations.merge_times import MONTH, timestamp
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient, build_path
from factbook.outbound.outcomes import Answer, Missing, Outcome

# Projects share no request; so many of them are soon asked about.
BATCH: Final = 20
# 20,000 files and folders.
MOST_TREE_PAGES: Final = 200


async def collect(
    options: GitlabOptions, targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """Facts about each target (`group/project`) at this time, or the reason for their absence."""
    api = GitlabApi(client, options, memory, now)
    return await each(targets, lambda target: _one(api, options, target, now - MONTH))


async def read(
    options: GitlabOptions, target: str, file: str, client: HttpClient, memory: Memory
) -> Answer:
    """The file at this path, its bytes as the body; fetched again only if it has changed."""
    url = f"{options.rest}{build_path('projects', target, 'repository', 'files', file, 'raw')}"
    return await client.get(
        url, query={"ref": "HEAD"}, headers=ANYTHING, memory=memory, decode=False, follow=True
    )


async def _one(api: GitlabApi, options: GitlabOptions, target: str, cutoff: int) -> Collected:
    found = await projects.find(api, target, timestamp(cutoff))
    if isinstance(found, Missing):
        return Collected(missing={"": found})
    project = found.project
    bots = not options.exclude_bots
    _, paths, told = await asyncio.gather(
        projects.complete(api, found, cutoff, bots=bots),
        _paths(api, found),
        rules(api, project.number),
    )
    known = facts.GitlabSnapshot(found, paths, told, cutoff, bots=bots)
    if known.has_codeowners:
        known.codeowners = await projects.codeowners(api, project.full_path)
    return facts.collected(known)


async def _paths(api: GitlabApi, found: ProjectData) -> list[str] | Missing:
    """The paths of all files of the default branch, unordered; none for an empty repository."""
    project, repository = found.project, found.project.repository
    if "repository" in found.errors or repository is None:
        return found.errors.get("repository", NO_REPOSITORY)
    if repository.head is None:
        return [] if repository.empty else NO_BRANCH
    return await paths_at(api, project.number, project.full_path, repository.head)


async def paths_at(api: GitlabApi, number: str, name: str, head: str) -> list[str] | Missing:
    """The paths of all files of a project at a commit, unordered."""
    pages = partial(_listed, api, number, head)
    tree = RepositoryTree(number, head, name, pages, MOST_TREE_PAGES)
    return await file_tree.read(api.memory, tree, api.clones, api.now)


async def _listed(api: GitlabApi, number: str, head: str) -> list[str] | Missing:
    entries = await api.every(
        f"{build_path('projects', number)}/repository/tree",
        list[GitlabTreeEntry],
        pages=MOST_TREE_PAGES,
        ref=head,
        recursive="true",
        pagination="keyset",
    )
    if isinstance(entries, Missing):
        hidden = entries.outcome in {Outcome.DENIED, Outcome.NOT_FOUND}
        return NO_REPOSITORY if hidden else entries
    return [entry.path for entry in entries if entry.type == "blob"]
