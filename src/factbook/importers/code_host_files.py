"""Files of repositories at a code host, kept until a repository changes."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol
from urllib.parse import parse_qs, unquote

import msgspec

from factbook.importers.catalog_documents import ReadingBudget
from factbook.importers.catalog_files import FileLocation
from factbook.importers.code_hosts import Content, HostedRepository, Place
from factbook.integrations.integration import get_stored_entry, run_for_each, store_entry
from factbook.outbound.cache import Memory
from factbook.outbound.client import HttpClient
from factbook.outbound.outcomes import Missing, Outcome

HEAD: Final = "HEAD"
# Of the files of one repository that are kept, together.
_LARGEST_KEPT: Final = 4 * 1024 * 1024
_NOT_FOUND: Final = Missing(Outcome.NOT_FOUND)
# What an address may have before the name of a branch or tag.
_REFS: Final = ("refs/heads/", "refs/tags/")
_MOST_SLASHES: Final = 3


class FileCalls(Protocol):
    """Calls of a code host about files."""

    async def contents(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, Content]:
        """The content of each of the files."""

    async def paths(self, repository: HostedRepository) -> Sequence[str] | Missing:
        """The paths of all files of a repository at its default branch."""


class FileAddress(NamedTuple):
    """Address of a file: `rest` is its path, behind the branch unless `ref` names that.

    `slug` is a number where the address has that of the repository.
    """

    slug: str
    rest: str
    ref: str | None = None


class FileAddresses(NamedTuple):
    """Addresses of files at a host: their forms, with groups for slug, and for branch and path.

    Forms of an API have groups named `slug` and `path`; the branch is the argument `ref`, or else
    the default one. `{host}` stands for the host in a form. Files are read of these owners, as
    `owner` names one: "an organization".
    """

    host: str
    forms: Sequence[str]
    owners: Sequence[str]
    owner: str = "an organization"

    def read(self, url: str) -> FileAddress | str:
        """An address in its parts, or the reason that it is none of a file on this host."""
        text, _, query = url.partition("#")[0].partition("?")
        host = f"(?i:{re.escape(self.host)})"
        found = (re.fullmatch(form.replace("{host}", host), text) for form in self.forms)
        match = next(filter(None, found), None)
        if match is None:
            return f"the target is not a file on {self.host}"
        slug, rest = unquote(match[1]).removesuffix(".git"), match[2]
        if "path" not in match.groupdict():
            return FileAddress(slug, rest)
        ref = parse_qs(query, errors="replace").get("ref", [HEAD])[0]
        return FileAddress(slug, unquote(rest), ref)

    def is_read(self, slug: str) -> bool:
        """True for a repository of one of the owners."""
        return any(slug.lower().startswith(f"{owner.lower()}/") for owner in self.owners)


class _KeptFiles(msgspec.Struct, array_like=True):
    """Files at one version; None for one that is not there.

    `cut_off` are the reasons why reading from a root file ended by its budget. `held` are the paths
    of files that held an entity, at any version.
    """

    version: str
    files: dict[str, bytes | None]
    cut_off: dict[str, str] = {}
    held: set[str] = set()


class OtherRepository(msgspec.Struct, array_like=True):
    """Repository with files that another one names; `by` is the origin of that one.

    It `is_component` if these files have its only component, so that none is made of it.
    """

    by: str
    repository: HostedRepository
    is_component: bool


class _KeptOthers(msgspec.Struct, array_like=True):
    repositories: dict[str, OtherRepository]


class HostedFiles:
    """Access to the files of listed repositories, and of others of the same owners."""

    def __init__(
        self,
        calls: FileCalls,
        memory: Memory,
        addresses: FileAddresses,
        listed: Iterable[HostedRepository],
        elsewhere: Mapping[str, HttpClient] = MappingProxyType({}),
    ) -> None:
        """`elsewhere` are clients of hosts that content of fields may be read from, by address."""
        self._calls = calls
        self._memory = memory
        self._addresses = addresses
        self._listed = {one.slug.lower(): one for one in listed}
        self._numbered = {str(one.number): one for one in self._listed.values()}
        self._elsewhere = elsewhere
        self._kept: dict[str, _KeptFiles] = {}
        self._sizes: Counter[str] = Counter()
        self._changed: set[str] = set()

    def repository(self, slug: str) -> HostedRepository | None:
        """The listed repository with this path."""
        return self._listed.get(slug.lower())

    async def others(self, place: Place) -> dict[str, OtherRepository]:
        """Repositories whose files others of a place named at the last reading, by their paths."""
        kept = await get_stored_entry(self._memory, f"others:{place.origin}", _KeptOthers)
        return kept.repositories if kept else {}

    async def keep_others(self, place: Place, named: dict[str, OtherRepository]) -> None:
        """Keep them for the next reading."""
        await store_entry(self._memory, f"others:{place.origin}", _KeptOthers(named))

    def located(self, url: str, *, is_content: bool = False) -> FileLocation | str:
        """The file at a URL on this host, of one of the owners.

        Content of a field may also be on one of the other hosts.
        """
        for base in self._elsewhere if is_content else ():
            if url.lower().startswith(f"{base.lower()}/"):
                return FileLocation(base, HEAD, url[len(base) + 1 :].lstrip("/"))
        address = self._addresses.read(url)
        found = self._at(address) if isinstance(address, FileAddress) else address
        if isinstance(found, str):
            return f"{found}, or on a host of text_hosts" if is_content else found
        return found

    def _at(self, address: FileAddress) -> FileLocation | str:
        """The file of an address, if it is in a repository of one of the owners."""
        listed = self._listed.get(address.slug.lower()) or self._numbered.get(address.slug)
        slug = listed.slug if listed else address.slug
        if not self._addresses.is_read(slug):
            return f"the target is in {self._addresses.owner} that is not imported"
        branches = {HEAD, listed.branch} if listed else {HEAD}
        if address.ref is not None:
            ref, path = _strip_ref(address.ref), address.rest
            return FileLocation(slug, HEAD if ref in branches else ref, path)
        rest = _strip_ref(unquote(address.rest))
        # The default branch may have slashes. Others are cut at the first one for now.
        for branch in branches:
            if rest.startswith(f"{branch}/"):
                return FileLocation(slug, HEAD, rest[len(branch) + 1 :])
        ref, _, path = _strip_ref(address.rest).partition("/")
        if not path:
            return f"the target is not a file on {self._addresses.host}"
        return FileLocation(slug, unquote(ref), unquote(path))

    async def read(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, Content]:
        """The content of each of the files: those kept of the same version, or read and kept."""
        await run_for_each({one.repository.lower() for one in wanted}, self._recall)
        found: dict[FileLocation, Content] = {}
        for one in wanted:
            kept = self._kept_file(one)
            if kept is not None:
                found[one] = kept
        asked = [one for one in wanted if one not in found]
        found |= await self._elsewhere_contents(asked)
        asked = [one for one in asked if one not in found]
        found |= await self._calls.contents(asked)
        await self._look_at_longer_branches(found, asked)
        for one in asked:
            self._note(one, found[one])
        return found

    async def _elsewhere_contents(
        self, wanted: Sequence[FileLocation]
    ) -> dict[FileLocation, Content]:
        """The content of the files that are on other hosts."""

        async def of(one: FileLocation) -> Content:
            client = self._elsewhere[one.repository]
            answer = await client.get(one.path, decode=False, follow=True)
            return answer.body if answer.ok else answer.missing

        return await run_for_each([one for one in wanted if one.repository in self._elsewhere], of)

    async def _look_at_longer_branches(
        self, found: dict[FileLocation, Content], asked: Sequence[FileLocation]
    ) -> None:
        """Look for files that are not there on a branch with a slash in its name.

        Their address says where the branch ends for those who know the branches.
        """
        at = {one: one for one in asked if one.ref != HEAD}
        for _ in range(_MOST_SLASHES):
            at = {
                one: FileLocation(last.repository, f"{last.ref}/{folder}", rest)
                for one, last in at.items()
                for folder, slash, rest in [last.path.partition("/")]
                if slash and isinstance(gone := found[one], Missing) and not gone.passing
            }
            read = await self._calls.contents(list(dict.fromkeys(at.values()))) if at else {}
            found |= {one: read[last] for one, last in at.items() if isinstance(read[last], bytes)}

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
        return "" if kept is None else kept.cut_off.get(_make_reading_key(root), "")

    def note_cut_off(self, root: FileLocation, reason: str) -> None:
        """Remember that reading from this root file ended by its budget."""
        slug = root.repository.lower()
        if slug in self._kept:
            self._kept[slug].cut_off[_make_reading_key(root)] = reason
            self._changed.add(slug)

    def held_before(self, files: Iterable[FileLocation]) -> bool:
        """True if one of the files held an entity at an earlier reading, or may have."""
        kept = ((self._kept.get(one.repository.lower()), one.path) for one in files)
        return any(one is None or path in one.held for one, path in kept)

    def note_entities(self, files: Iterable[FileLocation]) -> None:
        """Remember which files hold entities."""
        for one in files:
            slug = one.repository.lower()
            if slug in self._kept and one.path not in self._kept[slug].held:
                self._kept[slug].held.add(one.path)
                self._changed.add(slug)

    async def remember(self) -> None:
        """Keep what was read for the next reading."""
        for slug in sorted(self._changed):
            kept, listed = self._kept[slug], self._listed[slug]
            if kept.cut_off or self._sizes[slug] > _LARGEST_KEPT:
                kept.files.clear()
            if kept.cut_off or kept.files or kept.held:
                await store_entry(self._memory, _make_files_key(listed), kept)

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
        stored = await get_stored_entry(self._memory, _make_files_key(listed), _KeptFiles)
        fits = stored is not None and stored.version == listed.version
        held = stored.held if stored else set()
        kept = stored if stored and fits else _KeptFiles(listed.version, {}, held=held)
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


def _strip_ref(ref: str) -> str:
    """The name of a branch or tag without what says that it is one."""
    for prefix in _REFS:
        ref = ref.removeprefix(prefix)
    return ref


def _make_reading_key(root: FileLocation) -> str:
    return f"{root.path} {ReadingBudget.key()}"


def _make_files_key(repository: HostedRepository) -> str:
    return f"files:{repository.number}"
