"""Files of repositories, many in one request, and kept until the HEAD of a repository moves."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

import msgspec

from factbook.importers.catalog_info.locations import FileLocation
from factbook.importers.github import queries
from factbook.importers.github.answers import GithubBlob, ListedRepository
from factbook.integrations.code_host import GraphqlStruct
from factbook.integrations.github.answers import decoded
from factbook.integrations.github.client import paths_at
from factbook.integrations.github.graphql import GithubApi
from factbook.integrations.integration import store_entry, stored_entry
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome

HEAD: Final = "HEAD"
_AT_ONCE: Final = 25
# Of the files of one repository that are kept, together.
_LARGEST_KEPT: Final = 4 * 1024 * 1024
_NOT_FOUND: Final = Missing(Outcome.NOT_FOUND)
_URL: Final = re.compile(r"https?://([^/]+)/([^/]+)/([^/]+)/(?:blob|tree|raw|edit)/([^/]+)/(.+)")

Content = bytes | Missing


class _KeptFiles(msgspec.Struct, array_like=True):
    """Files at one commit; None for one that is not there."""

    oid: str
    files: dict[str, bytes | None]


class _Holder(GraphqlStruct):
    file: GithubBlob | None = None


class GithubFiles:
    """Access to the files of listed repositories, and of others of the same organizations."""

    def __init__(
        self, api: GithubApi, organizations: Iterable[str], listed: Iterable[ListedRepository]
    ) -> None:
        self._api = api
        self._owners = {login.lower() for login in organizations}
        self._listed = {one.name_with_owner.lower(): one for one in listed}
        self._kept: dict[str, _KeptFiles] = {}
        self._changed: set[str] = set()

    def located(self, url: str) -> FileLocation | str:
        """The file at a URL on this host, in one of the organizations."""
        match = _URL.fullmatch(url.partition("?")[0].partition("#")[0])
        if match is None or match[1].lower() != self._api.host:
            return f"the target is not a file on {self._api.host}"
        if match[2].lower() not in self._owners:
            return "the target is in an organization that is not imported"
        name = f"{match[2]}/{match[3].removesuffix('.git')}"
        listed = self._listed.get(name.lower())
        branch = listed and listed.default_branch_ref
        ref = HEAD if branch and branch.name == match[4] else match[4]
        name = listed.name_with_owner if listed else name
        return FileLocation(name, ref, unquote(match[5]))

    async def read(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, Content]:
        """The content of each of the files: those kept of the same commit, or read and kept."""
        found: dict[FileLocation, Content] = {}
        for one in wanted:
            kept = await self._kept_file(one)
            if kept is not None:
                found[one] = kept
        asked = [one for one in wanted if one not in found]
        for start in range(0, len(asked), _AT_ONCE):
            portion = asked[start : start + _AT_ONCE]
            found |= await self._ask(portion)
        for one in asked:
            self._note(one, found[one])
        return found

    async def paths(
        self, wanted: Iterable[tuple[str, str]]
    ) -> Mapping[tuple[str, str], Sequence[str] | Missing]:
        """The paths of all files, by repository and branch."""
        return {each: await self._paths(*each) for each in wanted}

    async def remember(self) -> None:
        """Keep what was read for the next reading."""
        for name in sorted(self._changed):
            kept, listed = self._kept[name], self._listed[name]
            if sum(len(data or b"") for data in kept.files.values()) <= _LARGEST_KEPT:
                await store_entry(self._api.memory, _key(listed), kept)

    async def _paths(self, repository: str, ref: str) -> Sequence[str] | Missing:
        listed = self._listed.get(repository.lower())
        if listed is None or ref != HEAD:
            return Missing(Outcome.NOT_APPLICABLE, "patterns are read on default branches only")
        if listed.head is None:
            return []
        return await paths_at(self._api, listed.id, listed.name_with_owner, listed.head)

    async def _ask(self, wanted: Sequence[FileLocation]) -> dict[FileLocation, Content]:
        """The content of a few files, in halves if they are too heavy together."""
        variables: dict[str, Any] = {}
        for i, one in enumerate(wanted):
            owner, _, name = one.repository.partition("/")
            variables |= {f"o{i}": owner, f"n{i}": name, f"e{i}": self._expression(one)}
        told = await self._api.ask(queries.files(len(wanted)), variables)
        if told.failure:
            too_large = told.failure.outcome is Outcome.TOO_LARGE
            if len(wanted) > 1 and (told.too_heavy or too_large):
                half = len(wanted) // 2
                return {**await self._ask(wanted[:half]), **await self._ask(wanted[half:])}
            return dict.fromkeys(wanted, told.failure)
        errors = {error.path[0]: error.missing for error in told.errors if error.path}
        found: dict[FileLocation, Content] = {}
        for i, one in enumerate(wanted):
            if (error := errors.get(f"b{i}")) is not None:
                found[one] = error
                continue
            holder = decoded(told.data.get(f"b{i}", b""), _Holder)
            if holder is None:
                found[one] = UNUSABLE
            else:
                found[one] = holder.file.content() if holder.file else _NOT_FOUND
        return found

    def _expression(self, location: FileLocation) -> str:
        """The file as Git names it; the HEAD is the one that was listed, even if it has moved."""
        listed = self._listed.get(location.repository.lower())
        ref = listed.head if listed and location.ref == HEAD else None
        return f"{ref or location.ref}:{location.path}"

    async def _kept_file(self, location: FileLocation) -> Content | None:
        """The file of the last reading, if the HEAD is the same."""
        name = location.repository.lower()
        listed = self._listed.get(name)
        if listed is None or listed.head is None or location.ref != HEAD:
            return None
        if name not in self._kept:
            stored = await stored_entry(self._api.memory, _key(listed), _KeptFiles)
            fits = stored is not None and stored.oid == listed.head
            self._kept[name] = stored if stored and fits else _KeptFiles(listed.head, {})
        files = self._kept[name].files
        if location.path not in files:
            return None
        data = files[location.path]
        return _NOT_FOUND if data is None else data

    def _note(self, location: FileLocation, content: Content) -> None:
        name = location.repository.lower()
        if name not in self._kept or location.ref != HEAD:
            return
        if isinstance(content, bytes) or content.outcome is Outcome.NOT_FOUND:
            self._kept[name].files[location.path] = content if isinstance(content, bytes) else None
            self._changed.add(name)


def _key(repository: ListedRepository) -> str:
    return f"files:{repository.database_id}"
