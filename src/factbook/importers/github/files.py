"""Calls for the files of repositories at GitHub, many in one request."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from factbook.importers.catalog_info.locations import FileLocation
from factbook.importers.code_host.files import HEAD
from factbook.importers.code_host.repository import Content, HostedRepository
from factbook.importers.github import queries
from factbook.importers.github.answers import GithubBlob, ListedRepository
from factbook.integrations.code_host import GraphqlStruct
from factbook.integrations.github.answers import decoded
from factbook.integrations.github.client import paths_at
from factbook.integrations.github.graphql import GithubApi
from factbook.outbound.outcomes import UNUSABLE, Missing, Outcome

_RAW: Final = r"([^/]+/[^/]+)/(.+)"
_API: Final = r"https?://(?:api\.{host}|{host}/api/v3)"
_ADDRESSES: Final = (
    rf"{_API}/repos/(?P<slug>[^/]+/[^/]+)/contents/(?P<path>.+)",
    rf"{_API}/repositories/(?P<slug>\d+)/contents/(?P<path>.+)",
    r"https?://{host}/([^/]+/[^/]+)/(?:blob|tree|raw|edit|blame)/(.+)",
    rf"https?://(?:raw\.{{host}}|{{host}}/raw)/{_RAW}",
)
_PUBLIC: Final = "github.com"
_AT_ONCE: Final = 25
_NOT_FOUND: Final = Missing(Outcome.NOT_FOUND)


def addresses(host: str) -> tuple[str, ...]:
    """The forms of addresses of files at a host."""
    raw = (rf"https?://raw\.githubusercontent\.com/{_RAW}",) if host == _PUBLIC else ()
    return (*_ADDRESSES, *raw)


class _Holder(GraphqlStruct):
    file: GithubBlob | None = None


class GithubFileCalls:
    """Calls for files of listed repositories, and of others."""

    def __init__(self, api: GithubApi, listed: Iterable[ListedRepository]) -> None:
        self._api = api
        self._listed = {one.name_with_owner.lower(): one for one in listed}

    async def contents(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, Content]:
        """The content of each of the files."""
        found: dict[FileLocation, Content] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            found |= await self._ask(wanted[start : start + _AT_ONCE])
        return found

    async def paths(self, repository: HostedRepository) -> Sequence[str] | Missing:
        """The paths of all files of a repository at the commit that was listed."""
        listed, head = self._listed[repository.slug.lower()], repository.version or ""
        return await paths_at(self._api, listed.id, listed.name_with_owner, head)

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
