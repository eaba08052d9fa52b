"""The paths of all files at HEAD: asked for when HEAD has moved, else remembered."""

from typing import Final

import msgspec

from factbook.integrations import file_tree as trees
from factbook.integrations.file_tree import Paths
from factbook.integrations.github.answers import Oid, Repository, RepositoryData
from factbook.integrations.github.graphql import GithubApi
from factbook.outbound import path
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome

# Calls for one tree that GitHub cuts off at 100,000 entries.
MOST_CALLS: Final = 200

_HIDDEN: Final = Missing(Outcome.DENIED, "the credential may not read the contents")
_TOO_LARGE: Final = Missing(Outcome.TRANSIENT, f"the tree takes more than {MOST_CALLS} calls")
_EMPTY_REPOSITORY: Final = 409


class _Entry(msgspec.Struct):
    path: str
    type: str
    sha: Oid


class _Tree(msgspec.Struct):
    tree: list[_Entry]
    truncated: bool = False


async def paths(api: GithubApi, found: RepositoryData) -> Paths | Missing:
    """The paths of all files of the default branch, in no order; none of an empty repository."""
    repository = found.repository
    branch = repository.default_branch_ref
    if branch is None or branch.target is None:
        missing = found.missing("defaultBranchRef.target")
        return missing or ([] if repository.is_empty else _HIDDEN)
    oid = branch.target.oid
    known = await trees.kept(api.memory, repository.id, oid)
    if known is not None:
        return known
    read = await _Walk(api, repository).everything(oid)
    if not isinstance(read, Missing):
        await trees.keep(api.memory, repository.id, oid, read)
    return read


class _Walk:
    """One reading of a tree, sub-tree by sub-tree where the whole is cut off."""

    def __init__(self, api: GithubApi, repository: Repository) -> None:
        self._api = api
        self._repository = repository.name_with_owner.split("/")
        self._calls = 0

    async def everything(self, sha: str, folder: str = "") -> Paths | Missing:
        """The paths of all files in the tree, under the folder that it is."""
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
        target = path("repos", *self._repository, "git", "trees", sha)
        answer = await self._api.get(target, form=_Tree, **query)
        if answer.status == _EMPTY_REPOSITORY:
            return _Tree([])
        if not answer.ok:
            hidden = answer.outcome in {Outcome.DENIED, Outcome.NOT_FOUND}
            return _HIDDEN if hidden else answer.missing
        return answer.data if isinstance(answer.data, _Tree) else UNUSABLE
