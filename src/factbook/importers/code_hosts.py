"""Shared parts of code host importers: options, repositories, entities, listings and files.

Files of a repository are kept until it changes.
"""

import posixpath
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, Final, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import parse_qs, unquote

import msgspec
from msgspec.structs import replace

from factbook.catalog import ref
from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.catalog.validation import valid_namespace, valid_tag
from factbook.errors import ConfigurationError, InputError
from factbook.importers.catalog_files import FileLocation, ReadingBudget
from factbook.importers.importer import NO_NAMESPACE, AccountImporterOptions, ReadingContext
from factbook.importers.snapshot import Snapshot
from factbook.integrations.integration import (
    SOURCE_LOCATION,
    Authorize,
    get_stored_entry,
    run_for_each,
    store_entry,
)
from factbook.outbound.cache import Memory
from factbook.outbound.client import ANONYMOUS, HttpClient, extract_host
from factbook.outbound.outcomes import Answer, Missing, Outcome, read_as
from factbook.settings.option_tables import about

Api = TypeVar("Api")
Further = TypeVar("Further")

CATALOG_FILES: Final = ("catalog-info.yaml", "catalog-info.yml")
# Of each repository, in the one query of its listing.
_MOST_FILES: Final = 4
_OWNER_PATH: Final = re.compile(r"[\w.-]+(/[\w.-]+)*", re.ASCII)
# Owner and name, or a prefix of both.
_REPOSITORY_PATTERN: Final = re.compile(r"[\w.-]+(/[\w.-]+)+|([\w./-]*)\*", re.ASCII)

Content = bytes | Missing

_NO_TOTAL: Final = Missing(Outcome.INCOMPLETE, "no total in the answer")
_CHANGED: Final = Missing(Outcome.TRANSIENT, "the list changed each time that it was read")
_READINGS: Final = 3

API_VERSION: Final = "backstage.io/v1alpha1"
VIEW_URL: Final = "backstage.io/view-url"
_TYPE_TOPIC: Final = "type-"
# Git patterns for every file. Not `/*`, which on GitHub matches only files in the root folder,
# and not `**/`, which excludes these.
EVERYTHING: Final = frozenset({"*", "**", "/**", "**/*", "/**/*", "**/**", "/**/**"})
_MOST_OWNERS: Final = 20
_OWNER_NAME: Final = re.compile(r"@([\w.-]+)(?:/([\w.-]+))?", re.ASCII)

Entity = dict[str, Any]


class CodeHostImportOptions(AccountImporterOptions, frozen=True, kw_only=True):
    """The repositories to import, and the files to read."""

    files: Annotated[
        tuple[str, ...], about("Paths of catalog files; the first that exists is read.")
    ] = CATALOG_FILES
    archived: Annotated[bool, about("Import archived repositories, as deprecated.")] = False
    forks: Annotated[bool, about("Import forks.")] = False
    people: Annotated[bool, about("Import teams and members.")] = True
    text_hosts: Annotated[
        tuple[str, ...],
        about(
            "Other hosts whose files `$text`, `$json` and `$yaml` may name, such as "
            "`specs.example.com` or `http://specs.internal:8080/apis`. They are sent no credential."
        ),
    ] = ()
    namespace: Annotated[
        str,
        about(
            "Namespace of everything that is made of repositories, teams and members. Empty: "
            "`default` for the first organization, and for each further one its name; what was "
            "imported before stays in its namespace."
        ),
    ] = ""
    people_from: Annotated[
        tuple[str, ...],
        about(
            "Repositories whose catalog files may add users and groups, such as `acme/people` or "
            "`acme/team-*`. Their memberships give rights once `people_sets` names the part."
        ),
    ] = ()

    @property
    def text_bases(self) -> tuple[str, ...]:
        """The base URLs of the hosts."""
        bases = (one if "://" in one else f"https://{one}" for one in self.text_hosts)
        return tuple(base.rstrip("/") for base in bases)

    def problems(self) -> Iterable[str]:
        """The mistakes in the table, and patterns that can't match anything."""
        yield from super().problems()
        if not 1 <= len(self.files) <= _MOST_FILES:
            yield f"files has to have between one and {_MOST_FILES} paths"
        names = {name for path in self.files for name in path.split("/")}
        if names & {"", ".", ".."} or any(set(name) & set("*?[]") for name in names):
            yield (
                "files has a path that matches nothing: paths begin in the root folder, without a "
                "slash in front, such as docs/catalog-info.yaml; patterns belong in the targets of "
                "a Location"
            )
        if not all(map(_REPOSITORY_PATTERN.fullmatch, self.people_from)):
            yield "people_from has to be like acme/people or acme/team-*"
        for name, base in zip(self.text_hosts, self.text_bases, strict=True):
            try:
                extract_host(base)
            except ConfigurationError as error:
                yield f"text_hosts: {name}: {error.message}"
        if self.namespace and not valid_namespace(self.namespace):
            yield NO_NAMESPACE

    def further(self) -> Mapping[str, Authorize]:
        """Further hosts to call, without a credential."""
        return dict.fromkeys(self.text_bases, lambda _: ANONYMOUS)


Options = TypeVar("Options", bound=CodeHostImportOptions)


def complete_options(options: Options, account: Any, *, name: str, flag: str) -> Options:
    """The options, with the account's owners as default.

    `name` is the option for owners in both, `flag` the command-line flag. Raises
    ConfigurationError if neither names an owner, and for patterns that can't match anything.
    """
    owners = getattr(options, name) or tuple(getattr(account, name))
    if not owners:
        raise ConfigurationError(f"{name} has to name at least one, such as acme ({flag} acme).")
    for owner in owners:
        if not _OWNER_PATH.fullmatch(owner) or ("/" in owner and name != "groups"):
            raise ConfigurationError(f"{name} has to be names such as acme: {owner} is not one.")
    for pattern in options.people_from:
        if not any(_may_match_owner(pattern, owner) for owner in owners):
            raise ConfigurationError(
                f"people_from: {pattern} matches nothing, as {name} are {', '.join(owners)}."
            )
    return replace(options, **{name: owners})


def _may_match_owner(pattern: str, owner: str) -> bool:
    """True if a pattern can match a repository of this owner."""
    start, below = pattern.lower(), f"{owner.lower()}/"
    if start.endswith("*"):
        start = start[:-1]
        return start.startswith(below) or below.startswith(start)
    return start.startswith(below)


def make_reader(
    api: Callable[[HttpClient, Any, Memory, int], Api],
    read: Callable[[Api, Options, Further], Awaitable[Snapshot]],
) -> Callable[[ReadingContext, Options, Further], Awaitable[Snapshot]]:
    """Adapt a read function for an API client to a reading context, for full or hinted reads."""

    async def work(reading: ReadingContext, options: Options, further: Further) -> Snapshot:
        made = api(reading.client, reading.account, reading.memory, reading.now)
        return await read(made, options, further)

    return work


class Place(NamedTuple):
    """An organization or group to import, its host, and the namespaces of its entities.

    `groups` has the names of its groups by the host's names in lower case.
    """

    host: str
    login: str
    namespace: str = DEFAULT_NAMESPACE
    people: str = DEFAULT_NAMESPACE
    groups: Mapping[str, str] = MappingProxyType({})

    @property
    def origin(self) -> str:
        """Origin of the problems of an organization as a whole."""
        return f"{self.host}/{self.login}"

    def origin_of(self, slug: str) -> str:
        """Origin of everything in a repository."""
        return f"{self.host}/{slug}"

    def id_of(self, kind: str, number: int) -> str:
        """An id that survives renaming."""
        return f"{self.host}/{kind}/{number}"

    def name_of(self, kind: str, name: str) -> str:
        """The entity name for a name on the host."""
        return self.groups.get(name.lower(), name) if kind == "group" else name

    def group_of(self, name: str) -> str | None:
        """The name of the group that files of this place refer to; None if unknown."""
        below, wanted = f"{self.login.lower()}/", name.lower()
        for key, group in self.groups.items():
            if key.removeprefix(below).replace("/", "-") == wanted:
                return group
        return next((group for group in self.groups.values() if group.lower() == wanted), None)

    def namespace_of(self, kind: str) -> str:
        """The namespace of the entities of a kind."""
        return self.people if kind == "user" else self.namespace

    def ref(self, kind: str, name: str) -> str:
        """The entity reference for a name on the host."""
        return f"{kind}:{self.namespace_of(kind)}/{self.name_of(kind, name)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedRepository:
    """Repository of a listing.

    `slug` is its path at the host, `name` that of its component. `version` differs after each
    change of its files, None without files. `tree` is the address of its root folder, with a
    trailing slash. `annotations` identify the repository. `is_deleted`: deleted by its people,
    though the host still keeps it for a while.
    """

    number: int
    slug: str
    name: str
    url: str
    tree: str
    branch: str
    version: str | None
    annotations: Mapping[str, str]
    description: str | None = None
    topics: Sequence[str] = ()
    language: str = ""
    is_archived: bool = False
    is_fork: bool = False
    is_deleted: bool = False


@dataclass(slots=True)
class RootContent:
    """The root files of a repository.

    `catalog` is the path and content of the catalog file, `codeowners` the text of the CODEOWNERS
    file. `missing` has the reasons why files that may exist were not read.
    """

    catalog: tuple[str, Content] | None = None
    codeowners: str | None = None
    missing: list[Missing] = field(default_factory=list)


class Ownership(NamedTuple):
    """Owner of a repository, if any; not `certain` if something was not read."""

    ref: str | None
    certain: bool = True


OwnerOf = Callable[[HostedRepository, RootContent], Ownership]


class _Identified(Protocol):
    id: int


Row = TypeVar("Row", bound=_Identified)


@dataclass
class RowListing(Generic[Row]):
    """The rows by id in the order of the list, and the reason if it is not complete.

    `total` is the largest reported by any page, as later pages may be wrong. `pages` counts pages
    read.
    """

    rows: dict[int, Row] = field(default_factory=dict)
    missing: Missing | None = None
    total: int | None = None
    pages: int = 0

    def take(self, page: Sequence[Any] | Missing, type_: type[Row]) -> bool:
        """Add the rows of a page; false if the page has no new rows or is missing."""
        if isinstance(page, Missing):
            self.missing = self.missing or page
            return False
        self.pages += 1
        before = len(self.rows)
        for one in page:
            row = read_as(one, type_)
            if isinstance(row, Missing):
                self.missing = self.missing or row
            else:
                self.rows[row.id] = row
        return len(self.rows) > before

    def count(self, answer: Answer, header: str) -> None:
        """Note the total in a header of an answer, if there is one."""
        text = answer.headers.get(header, "")
        if text.isascii() and text.isdigit() and len(text) < 12:
            self.total = max(self.total or 0, int(text))

    def sort(self) -> None:
        """Order the rows by their ids."""
        self.rows = dict(sorted(self.rows.items()))

    def end(self, most_uncounted: int = 0) -> None:
        """Compare the rows with the total; lists longer than `most_uncounted` may have no total."""
        read = len(self.rows)
        if self.total is None and read <= most_uncounted:
            self.missing = self.missing or _NO_TOTAL
        elif read < (self.total or 0):
            text = f"{read:,} of {self.total:,} were listed"
            self.missing = self.missing or Missing(Outcome.INCOMPLETE, text)


async def repeat_until_agreed(read: Callable[[], Awaitable[RowListing[Row]]]) -> RowListing[Row]:
    """The rows of an unsorted list, read until two consecutive readings agree.

    If a row is removed between two pages and another is appended, a third row moves to a page that
    was already read, and the total still matches. The next reading then lacks the removed row. A
    list of one page is always complete.
    """
    found = await read()
    for _ in range(_READINGS - 1):
        if found.missing or found.pages < 2:
            return found
        before, found = found.rows.keys(), await read()
        if found.rows.keys() == before:
            return found
    found.missing = found.missing or (_CHANGED if found.pages > 1 else None)
    return found


def make_component(place: Place, one: HostedRepository, owner: str | None) -> Entity:
    """The component of a repository without a catalog file."""
    named = (
        topic.removeprefix(_TYPE_TOPIC) for topic in one.topics if topic.startswith(_TYPE_TOPIC)
    )
    spec: Entity = {
        "type": next(filter(None, named), "repository"),
        "lifecycle": "deprecated" if one.is_archived else "production",
    }
    if owner is not None:
        spec["owner"] = owner
    made = make_metadata(place, "component", one.name, one.description)
    language = one.language.lower().replace(" ", "-")
    names = [topic for topic in one.topics if not topic.startswith(_TYPE_TOPIC)]
    if tags := [tag for tag in dict.fromkeys([*names, language]) if valid_tag(tag)]:
        made["tags"] = tags
    made["annotations"] = make_annotations(one, "")
    return {"apiVersion": API_VERSION, "kind": "Component", "metadata": made, "spec": spec}


def annotate_entity(one: HostedRepository, entity: Entity, path: str) -> Entity:
    """An entity of a file, with the annotations of its repository as defaults."""
    found = entity.get("metadata")
    if not isinstance(found, dict):
        return entity
    own = found.get("annotations")
    if not (own is None or isinstance(own, dict)):
        return entity
    given = {**make_annotations(one, posixpath.dirname(path)), **(own or {})}
    return {**entity, "metadata": {**found, "annotations": given}}


def qualify_owner(place: Place, entity: Entity) -> Entity:
    """An entity of a file, with an owner without a namespace resolved to the place's group.

    The owner stays if the place has no group of that name, or if the entity has its own namespace.
    """
    spec, found = entity.get("spec"), entity.get("metadata")
    if not (isinstance(spec, dict) and isinstance(found, dict)) or found.get("namespace"):
        return entity
    try:
        kind, namespace, name = ref.split_ref(spec.get("owner") or "")
    except (InputError, TypeError, AttributeError):
        return entity
    group = place.group_of(name)
    if namespace or (kind or "group").lower() != "group" or group is None:
        return entity
    if (place.namespace, group.lower()) == (DEFAULT_NAMESPACE, name.lower()):
        return entity
    return {**entity, "spec": {**spec, "owner": f"group:{place.namespace}/{group}"}}


def make_annotations(one: HostedRepository, folder: str) -> dict[str, str]:
    """The annotations that name a repository, and a folder in it."""
    tree = f"{one.tree}{folder}/" if folder else one.tree
    return {**one.annotations, SOURCE_LOCATION: f"url:{tree}", VIEW_URL: one.url}


def make_metadata(place: Place, kind: str, name: str, description: str | None) -> Entity:
    """The metadata of an entity for a name on the host."""
    found: Entity = {"name": place.name_of(kind, name)}
    if (namespace := place.namespace_of(kind)) != DEFAULT_NAMESPACE:
        found["namespace"] = namespace
    if description and description.strip():
        found["description"] = description.strip()
    return found


class KnownOwners(NamedTuple):
    """Teams and people who may be owners, by name in lower case; None: unknown.

    Teams of other organizations and people who left are never included.
    """

    teams: Collection[str] | None
    people: Collection[str] | None

    def first(self, place: Place, owners: Iterable[str]) -> str | None:
        """The reference of the first known owner among these CODEOWNERS names."""
        for owner in owners:
            match = _OWNER_NAME.fullmatch(owner)
            if match is None:
                continue
            name, team = match[1].lower(), match[2] and match[2].lower()
            if team is None:
                if self.people is None or name in self.people:
                    return place.ref("user", match[1])
            elif name == place.login.lower() and (self.teams is None or team in self.teams):
                return place.ref("group", team)
        return None


def find_owners_of_everything(
    text: str, *, patterns: Collection[str] = EVERYTHING, sections: bool = False
) -> list[str]:
    """The owners in the last CODEOWNERS line that matches every file.

    Such a line has one of these patterns. With GitLab's `sections`, a line without owners has the
    owners of its section.
    """
    owners: list[str] = []
    default: list[str] = []
    for line in text.splitlines():
        content = line.removeprefix("\ufeff").partition("#")[0].strip()
        if sections and content.lstrip("^").startswith("["):
            default = content.rpartition("]")[2].split()[:_MOST_OWNERS]
            continue
        pattern, *named = content.split()[: _MOST_OWNERS + 1] or [""]
        if pattern in patterns:
            owners = named or default
    return owners


HEAD: Final = "HEAD"
# Total size of one repository's kept files.
_LARGEST_KEPT: Final = 4 * 1024 * 1024
_NOT_FOUND: Final = Missing(Outcome.NOT_FOUND)
# Prefixes of a branch or tag name in addresses.
_REFS: Final = ("refs/heads/", "refs/tags/")
_MOST_SLASHES: Final = 3


class FileCalls(Protocol):
    """Calls of a code host about files."""

    async def contents(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, Content]:
        """The content of each of the files."""

    async def paths(self, repository: HostedRepository) -> Sequence[str] | Missing:
        """The paths of all files of a repository at its default branch."""


class FileAddress(NamedTuple):
    """Address of a file: `rest` is its path, preceded by the branch unless `ref` is set.

    `slug` is a number if the address has the repository's number.
    """

    slug: str
    rest: str
    ref: str | None = None


class FileAddresses(NamedTuple):
    """Addresses of files at a host: their forms, with groups for slug, and for branch and path.

    API forms have groups named `slug` and `path`; the branch is the argument `ref`, or else the
    default branch. `{host}` in a form is replaced by the host. Only files of these owners are read;
    `owner` is the noun for one: "an organization".
    """

    host: str
    forms: Sequence[str]
    owners: Sequence[str]
    owner: str = "an organization"

    def read(self, url: str) -> FileAddress | str:
        """The parts of an address, or the reason why it is not a file on this host."""
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
    """Files at one version; None for a missing file.

    `cut_off` has the reasons for root files whose reading exceeded the budget. `held` are the paths
    of files that had an entity, at any version.
    """

    version: str
    files: dict[str, bytes | None]
    cut_off: dict[str, str] = {}
    held: set[str] = set()


class OtherRepository(msgspec.Struct, array_like=True):
    """Repository with files named by another repository, whose origin is `by`.

    `is_component`: these files have its only component, so no other is generated.
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
        """`elsewhere` has the clients of further hosts for field content, by address."""
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
        """Repositories with files named by others in the place at the last reading, by path."""
        kept = await get_stored_entry(self._memory, f"others:{place.origin}", _KeptOthers)
        return kept.repositories if kept else {}

    async def keep_others(self, place: Place, named: dict[str, OtherRepository]) -> None:
        """Keep them for the next reading."""
        await store_entry(self._memory, f"others:{place.origin}", _KeptOthers(named))

    def located(self, url: str, *, is_content: bool = False) -> FileLocation | str:
        """The file at a URL on this host, of one of the owners.

        Field content may also be on one of the further hosts.
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
        # The default branch may contain slashes. Other branches are cut at the first slash for now.
        for branch in branches:
            if rest.startswith(f"{branch}/"):
                return FileLocation(slug, HEAD, rest[len(branch) + 1 :])
        ref, _, path = _strip_ref(address.rest).partition("/")
        if not path:
            return f"the target is not a file on {self._addresses.host}"
        return FileLocation(slug, unquote(ref), unquote(path))

    async def read(self, wanted: Sequence[FileLocation]) -> Mapping[FileLocation, Content]:
        """The content of each file: kept from the same version, or read and kept."""
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
        """The content of the files on other hosts."""

        async def of(one: FileLocation) -> Content:
            client = self._elsewhere[one.repository]
            answer = await client.get(one.path, decode=False, follow=True)
            return answer.body if answer.ok else answer.missing

        return await run_for_each([one for one in wanted if one.repository in self._elsewhere], of)

    async def _look_at_longer_branches(
        self, found: dict[FileLocation, Content], asked: Sequence[FileLocation]
    ) -> None:
        """Look for missing files on branches with a slash in the name.

        An address is ambiguous about the end of the branch without a list of branches.
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
        found: dict[tuple[str, str], Sequence[str] | Missing] = {}
        for slug, branch in wanted:
            listed = self._listed.get(slug.lower())
            if listed is None or branch != HEAD:
                found[slug, branch] = Missing(
                    Outcome.NOT_APPLICABLE, "patterns are read on default branches only"
                )
            elif listed.version is None:
                found[slug, branch] = []
            else:
                found[slug, branch] = await self._calls.paths(listed)
        return found

    async def cut_off(self, root: FileLocation) -> str:
        """The reason if reading from this root file exceeded the budget, else "".

        The reason comes from an earlier reading of the same version under the same limits.
        """
        slug = root.repository.lower()
        await self._recall(slug)
        kept = self._kept.get(slug)
        return "" if kept is None else kept.cut_off.get(_make_reading_key(root), "")

    def note_cut_off(self, root: FileLocation, reason: str) -> None:
        """Remember that reading from this root file exceeded the budget."""
        slug = root.repository.lower()
        if slug in self._kept:
            self._kept[slug].cut_off[_make_reading_key(root)] = reason
            self._changed.add(slug)

    def held_before(self, files: Iterable[FileLocation]) -> bool:
        """True if one of the files had, or may have had, an entity at an earlier reading."""
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
        """Keep the files for the next reading."""
        for slug in sorted(self._changed):
            kept, listed = self._kept[slug], self._listed[slug]
            if kept.cut_off or self._sizes[slug] > _LARGEST_KEPT:
                kept.files.clear()
            if kept.cut_off or kept.files or kept.held:
                await store_entry(self._memory, _make_files_key(listed), kept)

    async def _recall(self, slug: str) -> None:
        """Look up a repository's kept files, once."""
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
        """The file from the last reading, if the version is the same."""
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
    """The name of a branch or tag without its prefix."""
    for prefix in _REFS:
        ref = ref.removeprefix(prefix)
    return ref


def _make_reading_key(root: FileLocation) -> str:
    return f"{root.path} {ReadingBudget.key()}"


def _make_files_key(repository: HostedRepository) -> str:
    return f"files:{repository.number}"
