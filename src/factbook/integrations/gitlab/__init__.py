"""GitLab: the code-host shape, protection of the default branch, and the files of a project."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from factbook.integrations import code_host
from factbook.integrations.code_host import ANYTHING, MONTH, RepositoryTree, format_timestamp
from factbook.integrations.gitlab import facts
from factbook.integrations.gitlab.api import (
    GITLAB,
    NO_BRANCH,
    NO_REPOSITORY,
    SLUG,
    GitlabApi,
    GitlabOptions,
    GitlabTreeEntry,
    ProjectData,
    find_gitlab_target,
)
from factbook.integrations.gitlab.facts import get_project_rules
from factbook.integrations.integration import (
    SOURCE_LOCATION,
    Collected,
    Instance,
    Integration,
    Probe,
    make_vendor,
    run_for_each,
    split_targets,
)
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient, build_path
from factbook.outbound.git import make_basic_auth
from factbook.outbound.outcomes import Answer, Missing, Outcome

# Projects share no request, so a batch is small enough to finish soon.
BATCH: Final = 20
# 20,000 files and folders.
MOST_TREE_PAGES: Final = 200


async def collect_gitlab(
    options: GitlabOptions, targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """Facts about each target (`group/project`), or the reason that they are missing."""
    api = GitlabApi(client, options, memory, now)
    return await run_for_each(
        targets, lambda target: _collect_project(api, options, target, now - MONTH)
    )


async def read_gitlab_file(
    options: GitlabOptions, target: str, file: str, client: HttpClient, memory: Memory
) -> Answer:
    """Read a file of the default branch into the body; fetched again only if it changed."""
    url = f"{options.rest}{build_path('projects', target, 'repository', 'files', file, 'raw')}"
    return await client.get(
        url, query={"ref": "HEAD"}, headers=ANYTHING, memory=memory, decode=False, follow=True
    )


async def _collect_project(
    api: GitlabApi, options: GitlabOptions, target: str, cutoff: int
) -> Collected:
    found = await facts.find_project(api, target, format_timestamp(cutoff))
    if isinstance(found, Missing):
        return Collected(missing={"": found})
    project = found.project
    bots = not options.exclude_bots
    _, paths, told = await asyncio.gather(
        facts.complete_project(api, found, cutoff, bots=bots),
        _list_head_paths(api, found),
        get_project_rules(api, project.number),
    )
    known = facts.GitlabSnapshot(found, paths, told, cutoff, bots=bots)
    if known.has_codeowners:
        known.codeowners = await facts.count_codeowners_errors(api, project.full_path)
    return facts.make_gitlab_facts(known)


async def _list_head_paths(api: GitlabApi, found: ProjectData) -> list[str] | Missing:
    """The paths of all files of the default branch, unordered; none for an empty repository."""
    project, repository = found.project, found.project.repository
    if "repository" in found.errors or repository is None:
        return found.errors.get("repository", NO_REPOSITORY)
    if repository.head is None:
        return [] if repository.empty else NO_BRANCH
    return await list_gitlab_paths(api, project.number, project.full_path, repository.head)


async def list_gitlab_paths(
    api: GitlabApi, number: str, name: str, head: str
) -> list[str] | Missing:
    """The paths of all files of a project at a commit, unordered."""
    pages = partial(_list_tree, api, number, head)
    tree = RepositoryTree(number, head, name, pages, MOST_TREE_PAGES)
    return await code_host.read_file_tree(api.memory, tree, api.clones, api.now)


async def _list_tree(api: GitlabApi, number: str, head: str) -> list[str] | Missing:
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


_FEW: Final = {"membership": "true", "simple": "true", "per_page": 1}


def _make_gitlab_integration(instance: Instance[GitlabOptions]) -> Integration:
    options = instance.options
    own = () if options.host == GITLAB else (options.slug,)
    return Integration(
        source=instance.source(
            f"Merge requests, issues, protection and files on {options.host}.",
            (SLUG, SOURCE_LOCATION, *own),
        ),
        authorize=instance.credential({"authorization": f"Bearer {options.token}"}),
        base_url=options.origin,
        further={options.git: instance.credential(make_basic_auth("oauth2", options.token))},
        calls_at_once=6,
        target=partial(find_gitlab_target, options),
        batches=partial(split_targets, size=BATCH),
        collect=partial(collect_gitlab, options),
        read=partial(read_gitlab_file, options),
        probes=(Probe(right="read_api", target=f"{options.rest}/projects", query=_FEW),),
    )


INTEGRATION: Final = make_vendor(
    "gitlab",
    "GitLab",
    GitlabOptions,
    _make_gitlab_integration,
    ("codehost", "security.branchProtection", "repository"),
)
