"""Calls for the files of repositories at Gitea: one for each, if the root folder may have it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from factbook.importers.catalog_info.locations import FileLocation
from factbook.importers.code_host.files import HEAD
from factbook.importers.code_host.repository import Content, HostedRepository
from factbook.importers.gitea.answers import GiteaContent, OwnRepository
from factbook.integrations.gitea.answers import GiteaTreePage
from factbook.integrations.gitea.api import GiteaApi
from factbook.integrations.gitea.client import paths_of
from factbook.integrations.integration import each
from factbook.outbound import path
from factbook.outbound.outcomes import Missing, Outcome

# Addresses that Gitea wrote earlier name a branch without saying so.
ADDRESSES: Final = (
    r"https?://{host}/api/v1/repos/(?P<slug>[^/]+/[^/]+)/(?:raw|media|contents)/(?P<path>.+)",
    r"https?://{host}/([^/]+/[^/]+)/(?:src|raw|media)/(?:branch|tag|commit)/(.+)",
    r"https?://{host}/([^/]+/[^/]+)/(?:src|raw|media)/(.+)",
)
_NOT_FOUND: Final = Missing(Outcome.NOT_FOUND)
_HIDDEN: Final = Missing(Outcome.DENIED, "the repository is not there, or may not be read")
_CHANGED: Final = Missing(Outcome.INCOMPLETE, "the repository changed while it was read")

_Tree = tuple[str, str]


class GiteaFileCalls:
    """Calls for files of listed repositories, and of others."""

    def __init__(self, api: GiteaApi, listed: Iterable[OwnRepository]) -> None:
        self._api = api
        self._listed = {one.full_name: one for one in listed}

    async def contents(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, Content]:
        """The content of each of the files."""
        trees: dict[_Tree, list[FileLocation]] = {}
        for one in wanted:
            trees.setdefault((one.repository, one.ref), []).append(one)

        async def of(tree: _Tree) -> Mapping[FileLocation, Content]:
            return await self._of_tree(*tree, trees[tree])

        found: dict[FileLocation, Content] = {}
        for some in (await each(trees, of)).values():
            found |= some
        return found

    async def paths(self, repository: HostedRepository) -> Sequence[str] | Missing:
        """The paths of all files of a repository at its default branch."""
        return await paths_of(self._api, self._listed[repository.slug])

    async def _of_tree(
        self, slug: str, ref: str, wanted: Sequence[FileLocation]
    ) -> Mapping[FileLocation, Content]:
        """The files of one branch; those that the root folder does not lead to are not there."""
        names = await self._root_folder(slug, ref)
        if isinstance(names, Missing):
            return dict.fromkeys(wanted, names)
        return {
            one: await self._file(one) if one.path.split("/")[0] in names else _NOT_FOUND
            for one in wanted
        }

    async def _root_folder(self, slug: str, ref: str) -> set[str] | Missing:
        """The names of everything in the root folder."""
        names: set[str] = set()
        number = 1
        while True:
            target = path("repos", *slug.split("/"), "git", "trees", ref)
            page = await self._api.one(target, GiteaTreePage, _HIDDEN, page=number)
            if isinstance(page, Missing):
                return page
            before = len(names)
            names |= {entry.path for entry in page.tree}
            if not page.truncated:
                return names
            if len(names) == before:
                return _CHANGED
            number += 1

    async def _file(self, location: FileLocation) -> Content:
        parts = *location.repository.split("/"), "contents", *location.path.split("/")
        query = {} if location.ref == HEAD else {"ref": location.ref}
        found = await self._api.one(path("repos", *parts), GiteaContent, None, **query)
        if isinstance(found, GiteaContent):
            return found.content_of_file()
        is_there = "/" not in location.path and found.outcome is Outcome.NOT_FOUND
        return _CHANGED if is_there else found
