"""Files of repositories at a code host, kept until a repository changes."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol
from urllib.parse import unquote

import msgspec

from factbook.importers.catalog_info.documents import ReadingBudget
from factbook.importers.catalog_info.locations import FileLocation
from factbook.importers.code_host.repository import Content, HostedRepository
from factbook.integrations.integration import each, store_entry, stored_entry
from factbook.outbound import Memory
from factbook.outbound.outcomes import Missing, Outcome

HEAD: Final = "HEAD"
# Of the files of one repository that are kept, together.
_LARGEST_KEPT: Final = 4 * 1024 * 1024
_NOT_FOUND: Final = Missing(Outcome.NOT_FOUND)


class FileCalls(Protocol):
    """Calls of a code host about files."""

    async def contents(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, Content]:
        """The content of each of the files."""

    async def paths(self, repository: HostedRepository) -> Sequence[str] | Missing:
        """The paths of all files of a repository at its default branch."""


class FileAddresses(NamedTuple):
    """Addresses of files at a host: their form, with groups for host, slug, branch and path.

    Files are read of these owners, as `owner` names one: "an organization".
    """

    host: str
    form: re.Pattern[str]
    owners: Sequence[str]
    owner: str = "an organization"

    def read(self, url: str) -> re.Match[str] | str:
        """The parts of an address, or the reason that its file may not be read."""
        match = self.form.fullmatch(url.partition("?")[0].partition("#")[0])
        if match is None or match[1].lower() != self.host:
            return f"the target is not a file on {self.host}"
        if not any(match[2].lower().startswith(f"{owner.lower()}/") for owner in self.owners):
            return f"the target is in {self.owner} that is not imported"
        return match


class _KeptFiles(msgspec.Struct, array_like=True):
    """Files at one version; None for one that is not there.

    `cut_off` are the reasons why reading from a root file ended by its budget.
    """

    version: str
    files: dict[str, bytes | None]
    cut_off: dict[str, str] = {}


class HostedFiles:
    """Access to the files of listed repositories, and of others of the same owners."""

    def __init__(
        self,
        calls: FileCalls,
        memory: Memory,
        addresses: FileAddresses,
        listed: Iterable[HostedRepository],
    ) -> None:
        self._calls = calls
        self._memory = memory
        self._addresses = addresses
        self._listed = {one.slug.lower(): one for one in listed}
        self._kept: dict[str, _KeptFiles] = {}
        self._sizes: Counter[str] = Counter()
        self._changed: set[str] = set()

    def located(self, url: str) -> FileLocation | str:
        """The file at a URL on this host, of one of the owners."""
        match = self._addresses.read(url)
        if isinstance(match, str):
            return match
        slug = match[2].removesuffix(".git")
        listed = self._listed.get(slug.lower())
        is_default = listed is not None and listed.branch == match[3]
        ref = HEAD if is_default else match[3]
        return FileLocation(listed.slug if listed else slug, ref, unquote(match[4]))

    async def read(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, Content]:
        """The content of each of the files: those kept of the same version, or read and kept."""
        await each({one.repository.lower() for one in wanted}, self._recall)
        found: dict[FileLocation, Content] = {}
        for one in wanted:
            kept = self._kept_file(one)
            if kept is not None:
                found[one] = kept
        asked = [one for one in wanted if one not in found]
        found |= await self._calls.contents(asked)
        for one in asked:
            self._note(one, found[one])
        return found

    async def paths(
        self, wanted: Iterable[tuple[str, str]]
    ) -> Mapping[tuple[str, str], Sequence[str] | Missing]:
        """The paths of all files, by repository and branch."""
        return {each: await self._paths(*each) for each in wanted}

    async def cut_off(self, root: FileLocation) -> str:
        """The reason why reading from this root file ended by its budget, "" if it did not.

        It is that of an earlier reading of the same version, and under the same limits.
        """
        slug = root.repository.lower()
        await self._recall(slug)
        kept = self._kept.get(slug)
        return "" if kept is None else kept.cut_off.get(_reading_key(root), "")

    def note_cut_off(self, root: FileLocation, reason: str) -> None:
        """Remember that reading from this root file ended by its budget."""
        slug = root.repository.lower()
        if slug in self._kept:
            self._kept[slug].cut_off[_reading_key(root)] = reason
            self._changed.add(slug)

    async def remember(self) -> None:
        """Keep what was read for the next reading."""
        for slug in sorted(self._changed):
            kept, listed = self._kept[slug], self._listed[slug]
            if kept.cut_off or self._sizes[slug] > _LARGEST_KEPT:
                kept.files.clear()
            if kept.cut_off or kept.files:
                await store_entry(self._memory, _key(listed), kept)

    async def _paths(self, slug: str, ref: str) -> Sequence[str] | Missing:
        listed = self._listed.get(slug.lower())
        if listed is None or ref != HEAD:
            return Missing(Outcome.NOT_APPLICABLE, "patterns are read on default branches only")
        return [] if listed.version is None else await self._calls.paths(listed)

    async def _recall(self, slug: str) -> None:
        """Look up the files that are kept of a repository, once."""
        listed = self._listed.get(slug)
        if listed is None or listed.version is None or slug in self._kept:
            return
        stored = await stored_entry(self._memory, _key(listed), _KeptFiles)
        fits = stored is not None and stored.version == listed.version
        kept = stored if stored and fits else _KeptFiles(listed.version, {})
        self._kept[slug] = kept
        self._sizes[slug] = sum(len(data or b"") for data in kept.files.values())

    def _kept_file(self, location: FileLocation) -> Content | None:
        """The file of the last reading, if the version is the same."""
        kept = self._kept.get(location.repository.lower())
        if kept is None or location.ref != HEAD or location.path not in kept.files:
            return None
        data = kept.files[location.path]
        return _NOT_FOUND if data is None else data

    def _note(self, location: FileLocation, content: Content) -> None:
        slug = location.repository.lower()
        if slug not in self._kept or location.ref != HEAD:
            return
        if isinstance(content, Missing) and content.outcome is not Outcome.NOT_FOUND:
            return
        data = content if isinstance(content, bytes) else None
        self._sizes[slug] += len(data or b"")
        if self._sizes[slug] > _LARGEST_KEPT:
            # None of them will be kept.
            self._kept[slug].files.clear()
        else:
            self._kept[slug].files[location.path] = data
        self._changed.add(slug)


def _reading_key(root: FileLocation) -> str:
    return f"{root.path} {ReadingBudget.key()}"


def _key(repository: HostedRepository) -> str:
    return f"files:{repository.number}"
