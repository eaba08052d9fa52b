"""The paths of all files at HEAD: asked for when HEAD has moved, else remembered."""

from typing import Final

from factbook.integrations import file_tree as trees
from factbook.integrations.file_tree import Paths
from factbook.integrations.gitea.answers import GiteaBranch, GiteaRepository, Tree
from factbook.integrations.gitea.api import GiteaApi
from factbook.outbound import path
from factbook.outbound.outcomes import Missing, Outcome

# What a server gives at most unless it is configured otherwise; 200,000 entries.
_PAGE: Final = 1_000
MOST_PAGES: Final = 200

_HIDDEN: Final = Missing(Outcome.DENIED, "the credential may not read the contents")
_TOO_LARGE: Final = Missing(Outcome.TRANSIENT, f"the tree has more than {MOST_PAGES} pages")


async def paths(
    api: GiteaApi, repository: GiteaRepository, branch: GiteaBranch | Missing
) -> Paths | Missing:
    """The paths of all files of the default branch, in no order; none of an empty repository."""
    if repository.empty:
        return []
    if isinstance(branch, Missing):
        return branch
    oid = branch.commit.id
    known = await trees.kept(api.memory, repository.id, oid)
    if known is not None:
        return known
    read = await _read(api, path("repos", *repository.full_name.split("/"), "git", "trees", oid))
    if not isinstance(read, Missing):
        await trees.keep(api.memory, repository.id, oid, read)
    return read


async def _read(api: GiteaApi, target: str) -> Paths | Missing:
    found: Paths = []
    for number in range(1, MOST_PAGES + 1):
        tree = await api.one(target, Tree, _HIDDEN, recursive="true", page=number, per_page=_PAGE)
        if isinstance(tree, Missing):
            return tree
        found += (entry.path for entry in tree.tree if entry.type == "blob")
        if not tree.truncated:
            return found
    return _TOO_LARGE
