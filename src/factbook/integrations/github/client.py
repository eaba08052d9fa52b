"""Collection from a GitHub instance: a batch of repositories, from the first query to the facts."""

from collections.abc import Sequence
from functools import partial
from typing import Final

import msgspec

from factbook.integrations import file_tree
from factbook.integrations.file_tree import Paths, RepositoryTree
from factbook.integrations.github import facts, pages, probes, repositories
from factbook.integrations.github.answers import Oid, RepositoryData
from factbook.integrations.github.graphql import GithubApi
from factbook.integrations.github.options import GithubOptions
from factbook.integrations.integration import Collected, each
from factbook.integrations.merge_times import MONTH, timestamp
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient, build_path
from factbook.outbound.outcomes import UNUSABLE, Answer, Missing, Outcome

# Three questions of twenty, and one for the further pages of all of them.
BATCH: Final = 3 * repositories.AT_ONCE
# Calls for one tree that GitHub cuts off at 100,000 entries.
MOST_CALLS: Final = 200

_HIDDEN: Final = Missing(Outcome.DENIED, "the credential may not read the contents")
_TOO_LARGE: Final = Missing(Outcome.TOO_LARGE, "the tree takes too many calls")
_EMPTY_REPOSITORY: Final = 409


async def collect(
    options: GithubOptions, targets: Sequence[str], client: HttpClient, memory: Memory, now: int
) -> dict[str, Collected]:
    """The facts about each target (`owner/name`) at this time, or the reason for their absence."""
    api = GithubApi(client, options, memory, now)
    cutoff = now - MONTH
    since = timestamp(cutoff)
    bots = not options.exclude_bots
    known = await repositories.read(api, targets, since)
    found = [one for one in known.values() if isinstance(one, RepositoryData)]
    bypassed = await pages.complete(api, found, since, cutoff, bots=bots)

    async def collected(target: str) -> Collected:
        one = known[target]
        if isinstance(one, Missing):
            return Collected(missing={"": one})
        return facts.collected(await _known(api, one, cutoff, bypassed, bots=bots))

    return await each(known, collected)


async def read(
    options: GithubOptions, target: str, file: str, client: HttpClient, memory: Memory
) -> Answer:
    """The file at this path, its bytes as the body; fetched again only if it has changed."""
    url = f"{options.rest}{build_path('repos', *target.split('/'), 'contents', *file.split('/'))}"
    raw = {"accept": "application/vnd.github.raw+json"}
    return await client.get(
        url, headers=raw, budget="core", memory=memory, decode=False, follow=True
    )


async def _known(
    api: GithubApi, found: RepositoryData, cutoff: int, bypassed: pages.Bypasses, *, bots: bool
) -> facts.GithubSnapshot:
    """The data of a repository, completed by the queries that only REST supports."""
    known = facts.GithubSnapshot(
        found, await _paths(api, found), cutoff, bypassed=bypassed, bots=bots
    )
    repository = found.repository
    if probes.needs_protection(found) and repository.default_branch_ref:
        branch = repository.default_branch_ref.name
        known.classic = await probes.classic_rule(api, repository, branch)
    if probes.needs_alerts(found):
        known.no_alerts = await probes.no_alerts(api, repository)
    return known


class _Entry(msgspec.Struct):
    path: str
    type: str
    sha: Oid


class _Tree(msgspec.Struct):
    tree: list[_Entry]
    truncated: bool = False


async def _paths(api: GithubApi, found: RepositoryData) -> Paths | Missing:
    """The paths of all files of the default branch, unordered; none for an empty repository."""
    repository = found.repository
    branch = repository.default_branch_ref
    if branch is None or branch.target is None:
        missing = found.missing("defaultBranchRef.target")
        return missing or ([] if repository.is_empty else _HIDDEN)
    return await paths_at(api, repository.id, repository.name_with_owner, branch.target.oid)


async def paths_at(api: GithubApi, id_: str, name: str, oid: str) -> Paths | Missing:
    """The paths of all files of a repository (`owner/name`) at a commit, unordered."""
    walk = partial(_Walk(api, name).everything, oid)
    tree = RepositoryTree(id_, oid, name, walk, MOST_CALLS)
    return await file_tree.read(api.memory, tree, api.clones, api.now)


class _Walk:
    """Reader of a tree that descends into sub-trees if the whole is truncated."""

    def __init__(self, api: GithubApi, repository: str) -> None:
        self._api = api
        self._repository = repository.split("/")
        self._calls = 0

    async def everything(self, sha: str, folder: str = "") -> Paths | Missing:
        """The paths of all files in the tree, prefixed with its folder."""
        whole = await self._tree(sha, recursive=1)
        if isinstance(whole, Missing):
            return whole
        if not whole.truncated:
            return [f"{folder}{entry.path}" for entry in whole.tree if entry.type == "blob"]
        return await self._by_folder(sha, folder)

    async def _by_folder(self, sha: str, folder: str) -> Paths | Missing:
        level = await self._tree(sha)
        if isinstance(level, Missing):
            return level
        if level.truncated:
            return _TOO_LARGE
        found = [f"{folder}{entry.path}" for entry in level.tree if entry.type == "blob"]
        for entry in level.tree:
            if entry.type == "tree":
                below = await self.everything(entry.sha, f"{folder}{entry.path}/")
                if isinstance(below, Missing):
                    return below
                found += below
        return found

    async def _tree(self, sha: str, **query: int) -> _Tree | Missing:
        if self._calls == MOST_CALLS:
            return _TOO_LARGE
        self._calls += 1
        target = build_path("repos", *self._repository, "git", "trees", sha)
        answer = await self._api.get(target, form=_Tree, **query)
        if answer.status == _EMPTY_REPOSITORY:
            return _Tree([])
        if not answer.ok:
            hidden = answer.outcome in {Outcome.DENIED, Outcome.NOT_FOUND}
            return _HIDDEN if hidden else answer.missing
        return answer.data if isinstance(answer.data, _Tree) else UNUSABLE
