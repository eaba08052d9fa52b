"""Collection from a GitLab instance: all projects of a batch, from query to facts."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from factbook.clock import SECOND
from factbook.integrations import file_tree
from factbook.integrations.gitlab import facts, projects
from factbook.integrations.gitlab.answers import (
    NO_BRANCH,
    NO_REPOSITORY,
    GitlabTreeEntry,
    ProjectData,
)
from factbook.integrations.gitlab.api import GitlabApi
from factbook.integrations.gitlab.options import Options
from factbook.integrations.gitlab.rules import rules
from factbook.integrations.integration import Collected
from factbook.integrations.merge_times import MONTH
from factbook.outbound import HttpClient, Memory, path
from factbook.outbound.outcomes import Missing, Outcome

# Projects share no request; so many of them are soon asked about.
BATCH: Final = 20
# 20,000 files and folders.
MOST_TREE_PAGES: Final = 200


async def collect(
    options: Options, targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """The facts about each target (`group/project`) at this time, or why there are none."""
    api = GitlabApi(client, options, memory)
    async with asyncio.TaskGroup() as group:
        tasks = {
            target: group.create_task(_one(api, options, target, now - MONTH)) for target in targets
        }
    return {target: task.result() for target, task in tasks.items()}


async def _one(api: GitlabApi, options: Options, target: str, cutoff: int) -> Collected:
    since = datetime.fromtimestamp(cutoff // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found = await projects.find(api, target, since)
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
    """The paths of all files of the default branch, in no order; none of an empty repository."""
    project, repository = found.project, found.project.repository
    if "repository" in found.errors or repository is None:
        return found.errors.get("repository", NO_REPOSITORY)
    if repository.head is None:
        return [] if repository.empty else NO_BRANCH
    kept = await file_tree.kept(api.memory, project.number, repository.head)
    if kept is not None:
        return kept
    entries = await api.every(
        f"{path('projects', project.number)}/repository/tree",
        list[GitlabTreeEntry],
        pages=MOST_TREE_PAGES,
        ref=repository.head,
        recursive="true",
        pagination="keyset",
    )
    if isinstance(entries, Missing):
        hidden = entries.outcome in {Outcome.DENIED, Outcome.NOT_FOUND}
        return NO_REPOSITORY if hidden else entries
    paths = [entry.path for entry in entries if entry.type == "blob"]
    await file_tree.keep(api.memory, project.number, repository.head, paths)
    return paths
