"""Calls for the files of projects at GitLab, many in one request."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from factbook.importers.catalog_info.locations import FileLocation
from factbook.importers.code_host.files import HEAD
from factbook.importers.code_host.repository import Content, HostedRepository
from factbook.importers.gitlab import queries
from factbook.importers.gitlab.answers import BlobPage, ProjectWithFiles
from factbook.integrations.gitlab.answers import NO_REPOSITORY
from factbook.integrations.gitlab.api import GitlabApi, GitlabQueryResult
from factbook.integrations.gitlab.client import paths_at
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome, read_as

# Addresses that GitLab wrote earlier have no dash.
ADDRESSES: Final = (
    r"https?://{host}/api/v4/projects/(?P<slug>[^/]+)/repository/files/(?P<path>.+?)"
    r"(?:/(?:raw|blame))?",
    r"https?://{host}/([^/]+(?:/[^/]+)+?)/-/(?:blob|tree|raw|edit|blame)/(.+)",
    r"https?://{host}/([^/]+(?:/[^/]+)+?)/(?:blob|tree|raw|edit|blame)/(.+)",
)
# Twenty projects with a file each reach two thirds of the limit on complexity.
_AT_ONCE: Final = 20
_NOT_FOUND: Final = Missing(Outcome.NOT_FOUND)
_NO_PROJECT: Final = Missing(Outcome.DENIED, "there is no such project, or it is hidden")


class GitlabFileCalls:
    """Calls for files of listed projects, and of others."""

    def __init__(self, api: GitlabApi, listed: Iterable[HostedRepository]) -> None:
        self._api = api
        self._versions = {one.slug: one.version for one in listed}

    async def contents(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, Content]:
        """The content of each of the files."""
        found: dict[FileLocation, Content] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            found |= await self._ask(wanted[start : start + _AT_ONCE])
        return found

    async def paths(self, repository: HostedRepository) -> Sequence[str] | Missing:
        """The paths of all files of a project at the commit that was listed."""
        number, head = str(repository.number), repository.version or ""
        return await paths_at(self._api, number, repository.slug, head)

    async def _ask(self, wanted: Sequence[FileLocation]) -> dict[FileLocation, Content]:
        """The content of a few files, those of one project and branch together.

        They are asked for in halves if they are too much together.
        """
        trees: dict[tuple[str, str | None], list[FileLocation]] = {}
        for one in wanted:
            trees.setdefault((one.repository, self._ref(one)), []).append(one)
        variables: dict[str, Any] = {}
        for i, ((slug, ref), files) in enumerate(trees.items()):
            paths = [one.path for one in files]
            variables |= {f"p{i}": slug, f"r{i}": ref, f"f{i}": paths}
        told = await self._api.ask(queries.files(len(trees)), optional=(), **variables)
        if told.failure and told.failure.outcome is Outcome.TOO_LARGE and len(wanted) > 1:
            half = len(wanted) // 2
            return {**await self._ask(wanted[:half]), **await self._ask(wanted[half:])}
        found: dict[FileLocation, Content] = {}
        for i, files in enumerate(trees.values()):
            content = _contents(told, f"b{i}")
            if isinstance(content, Missing):
                found |= dict.fromkeys(files, content)
            else:
                found |= {one: content.get(one.path, _NOT_FOUND) for one in files}
        return found

    def _ref(self, location: FileLocation) -> str | None:
        """The branch; the HEAD is the one that was listed, even if it has moved."""
        if location.ref != HEAD:
            return location.ref
        return self._versions.get(location.repository)


def by_path(found: BlobPage) -> dict[str, Content] | Missing:
    """The files of an answer by their paths, unless one is hidden."""
    if None in found.nodes:
        return UNUSABLE
    return {blob.path: blob.content() for blob in found.nodes if blob}


def _contents(told: GitlabQueryResult, name: str) -> dict[str, Content] | Missing:
    """The files of a project that there are, or the reason that none were read."""
    failed = told.failure or told.below((name,))
    if failed is not None:
        return failed
    if told.data.get(name) is None:
        return _NO_PROJECT
    project = read_as(told.data[name], ProjectWithFiles)
    if isinstance(project, Missing):
        return project
    return NO_REPOSITORY if project.repository is None else by_path(project.repository.blobs)
