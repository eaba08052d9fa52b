"""Files of projects that an import begins with, of many projects in one request."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from factbook.importers.code_host.repository import RootContent
from factbook.importers.gitlab import queries
from factbook.importers.gitlab.answers import ListedProject, ProjectRoot
from factbook.importers.gitlab.files import by_path
from factbook.integrations.gitlab.answers import NO_BRANCH, NO_REPOSITORY, part
from factbook.integrations.gitlab.api import GitlabApi, GitlabQueryResult
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome, read_as

CODEOWNERS: Final = ("CODEOWNERS", "docs/CODEOWNERS", ".gitlab/CODEOWNERS")
_AT_ONCE: Final = 50
_LEAST: Final = 10
_DISABLED: Final = "disabled"


@dataclass
class GitlabRoot:
    """Root files of a project, its last commit if there is one, and its main language."""

    content: RootContent = field(default_factory=RootContent)
    version: str | None = None
    language: str = ""

    @property
    def is_read(self) -> bool:
        """True if nothing that may be there is missing."""
        return not self.content.missing


async def read_roots(
    api: GitlabApi, group: str, projects: Sequence[ListedProject], files: Sequence[str]
) -> dict[int, GitlabRoot]:
    """The root files of projects of a group, by number.

    Requests that fail are made smaller; after one with few projects fails, no more are made.
    """
    found = {one.id: GitlabRoot() for one in projects if _is_off(one)}
    asked = [one for one in projects if not _is_off(one)]
    reader, size, start = _RootReader(api, group, files), _AT_ONCE, 0
    while start < len(asked):
        some = asked[start : start + size]
        read = await reader.read(some)
        if not isinstance(read, Missing):
            found |= read
            start += size
        elif size > _LEAST and read.outcome in {Outcome.TRANSIENT, Outcome.TOO_LARGE}:
            size = max(_LEAST, size // 2)
        else:
            content = {one.id: GitlabRoot(RootContent(missing=[read])) for one in asked[start:]}
            return found | content
    return found


# GitLab has it since version 15.
_OPTIONAL: Final = frozenset({("group", "projects", "nodes", "languages")})


class _RootReader:
    def __init__(self, api: GitlabApi, group: str, files: Sequence[str]) -> None:
        self._api = api
        self._group = group
        self._files = files

    async def read(self, projects: Sequence[ListedProject]) -> dict[int, GitlabRoot] | Missing:
        """The root files of a few projects; or the reason that none were read."""
        ids = [f"gid://gitlab/Project/{one.id}" for one in projects]
        paths = [*self._files, *CODEOWNERS]
        told = await self._api.ask(
            queries.ROOTS, optional=_OPTIONAL, group=self._group, ids=ids, paths=paths
        )
        nodes = part(told.data, "group", "projects", "nodes")
        if told.failure or not isinstance(nodes, list):
            return told.failure or told.below(()) or UNUSABLE
        read = dict(self._of_nodes(told, nodes))
        lost = GitlabRoot(RootContent(missing=[NO_REPOSITORY]))
        return {one.id: read.get(one.id, lost) for one in projects}

    def _of_nodes(
        self, told: GitlabQueryResult, nodes: Sequence[Any]
    ) -> Iterator[tuple[int, GitlabRoot]]:
        for place, node in enumerate(nodes):
            one = read_as(node, ProjectRoot)
            if isinstance(one, ProjectRoot):
                error = told.below(("group", "projects", "nodes", place, "repository"))
                yield one.number, self._root(one, error)

    def _root(self, one: ProjectRoot, error: Missing | None) -> GitlabRoot:
        if error is not None or one.repository is None:
            return GitlabRoot(RootContent(missing=[error or NO_REPOSITORY]))
        files = by_path(one.repository.blobs)
        if one.repository.head is None and not one.repository.empty:
            files = NO_BRANCH
        if isinstance(files, Missing):
            return GitlabRoot(RootContent(missing=[files]))
        catalog = next(((path, files[path]) for path in self._files if path in files), None)
        owners = next((files[path] for path in CODEOWNERS if path in files), None)
        text = owners.decode() if isinstance(owners, bytes) else None
        return GitlabRoot(RootContent(catalog, text), one.repository.head, one.language)


def _is_off(project: ListedProject) -> bool:
    """True for a project that has no repository to anybody."""
    return project.repository_access_level == _DISABLED
