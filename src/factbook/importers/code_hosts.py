"""Parts that importers of code hosts share: options, repositories, their entities, and listings."""

import posixpath
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, Final, Generic, NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from factbook.catalog import ref
from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.catalog.validation import valid_namespace, valid_tag
from factbook.errors import ConfigurationError, InputError
from factbook.importers.importer import NO_NAMESPACE, AccountImporterOptions, ReadingContext
from factbook.importers.snapshot import Snapshot
from factbook.integrations.integration import SOURCE_LOCATION, Authorize
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
# The owner and the name, or the beginning of both.
_REPOSITORY_PATTERN: Final = re.compile(r"[\w.-]+(/[\w.-]+)+|([\w./-]*)\*", re.ASCII)

Content = bytes | Missing

_NO_TOTAL: Final = Missing(Outcome.INCOMPLETE, "no total in the answer")
_CHANGED: Final = Missing(Outcome.TRANSIENT, "the list changed each time that it was read")
_READINGS: Final = 3

API_VERSION: Final = "backstage.io/v1alpha1"
VIEW_URL: Final = "backstage.io/view-url"
_TYPE_TOPIC: Final = "type-"
# Patterns of Git for every file. `/*` is not among them, as GitHub takes it for the files of the
# root folder, nor is `**/`, which leaves these out.
EVERYTHING: Final = frozenset({"*", "**", "/**", "**/*", "/**/*", "**/**", "/**/**"})
_MOST_OWNERS: Final = 20
_OWNER_NAME: Final = re.compile(r"@([\w.-]+)(?:/([\w.-]+))?", re.ASCII)

Entity = dict[str, Any]


class CodeHostImportOptions(AccountImporterOptions, frozen=True, kw_only=True):
    """Repositories that are imported, and what is read of them."""

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
        """The mistakes in the table, and what can match nothing."""
        yield from super().problems()
        if not 1 <= len(self.files) <= _MOST_FILES:
            yield f"files has to have between one and {_MOST_FILES} paths"
        if not all(map(_is_file_path, self.files)):
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
        """The hosts that are called beside the account's, without a credential."""
        return dict.fromkeys(self.text_bases, lambda _: ANONYMOUS)


Options = TypeVar("Options", bound=CodeHostImportOptions)


def complete_options(options: Options, account: Any, *, name: str, flag: str) -> Options:
    """The options with the owners of the account where they name none.

    `name` is the option of both that names owners, `flag` that of the command line. Raises
    ConfigurationError if neither names one, and for what can match nothing.
    """
    owners = getattr(options, name) or tuple(getattr(account, name))
    if not owners:
        raise ConfigurationError(f"{name} has to name at least one, such as acme ({flag} acme).")
    for owner in owners:
        if not _OWNER_PATH.fullmatch(owner) or ("/" in owner and name != "groups"):
            raise ConfigurationError(f"{name} has to be names such as acme: {owner} is none.")
    for pattern in options.people_from:
        if not any(_may_match_owner(pattern, owner) for owner in owners):
            raise ConfigurationError(
                f"people_from: {pattern} matches nothing, as {name} are {', '.join(owners)}."
            )
    return replace(options, **{name: owners})


def _is_file_path(text: str) -> bool:
    """True for the path of one file from the root folder."""
    names = text.split("/")
    return not (set(names) & {"", ".", ".."} or set(text) & set("*?[]"))


def _may_match_owner(pattern: str, owner: str) -> bool:
    """True if a repository of an owner can be one that a pattern names."""
    start, below = pattern.lower(), f"{owner.lower()}/"
    if start.endswith("*"):
        start = start[:-1]
        return start.startswith(below) or below.startswith(start)
    return start.startswith(below)


def make_reader(
    api: Callable[[HttpClient, Any, Memory, int], Api],
    read: Callable[[Api, Options, Further], Awaitable[Snapshot]],
) -> Callable[[ReadingContext, Options, Further], Awaitable[Snapshot]]:
    """The reading of a kind, whether of everything or of what hints name, from one by an API."""

    async def work(reading: ReadingContext, options: Options, further: Further) -> Snapshot:
        made = api(reading.client, reading.account, reading.memory, reading.now)
        return await read(made, options, further)

    return work


class Place(NamedTuple):
    """Organization or group that entities are made of, its host, and their namespaces.

    `groups` are the names of its groups by what the host calls them, in lower case.
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
        """The id of a thing that outlives its name."""
        return f"{self.host}/{kind}/{number}"

    def name_of(self, kind: str, name: str) -> str:
        """The name of an entity that is made of what the host calls so."""
        return self.groups.get(name.lower(), name) if kind == "group" else name

    def group_of(self, name: str) -> str | None:
        """The name of the group that files of this place call so; None if it has none."""
        below, wanted = f"{self.login.lower()}/", name.lower()
        for key, group in self.groups.items():
            if key.removeprefix(below).replace("/", "-") == wanted:
                return group
        return next((group for group in self.groups.values() if group.lower() == wanted), None)

    def namespace_of(self, kind: str) -> str:
        """The namespace of the entities of a kind."""
        return self.people if kind == "user" else self.namespace

    def ref(self, kind: str, name: str) -> str:
        """The reference of an entity that is made of what the host calls so."""
        return f"{kind}:{self.namespace_of(kind)}/{self.name_of(kind, name)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostedRepository:
    """Repository of a listing.

    `slug` is its path at the host, `name` that of a component made of it. `version` is another one
    after each change of its files, None if there are none. `tree` is the address of its root
    folder, with a slash at its end. `annotations` are those that name it. One that `is_deleted` is
    gone for its people, though its host keeps it for a while.
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
    """Files of a repository that its import begins with.

    `catalog` is the path of its catalog file with the content, `codeowners` the text of the file
    that names owners. `missing` are reasons for which one that may exist was not read.
    """

    catalog: tuple[str, Content] | None = None
    codeowners: str | None = None
    missing: list[Missing] = field(default_factory=list)


class Ownership(NamedTuple):
    """Owner of a repository, if there is one; not `certain` while something was not read."""

    ref: str | None
    certain: bool = True


OwnerOf = Callable[[HostedRepository, RootContent], Ownership]


class _Identified(Protocol):
    id: int


Row = TypeVar("Row", bound=_Identified)


@dataclass
class RowListing(Generic[Row]):
    """The rows by id in the order of the list, and the reason if it is not complete.

    `total` is the largest that a page has told: a later page may be wrong. `pages` counts those
    that were read.
    """

    rows: dict[int, Row] = field(default_factory=dict)
    missing: Missing | None = None
    total: int | None = None
    pages: int = 0

    def take(self, page: Sequence[Any] | Missing, type_: type[Row]) -> bool:
        """Add the rows of a page; false if it brings no new one, or is none."""
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
        """Compare the rows with their total; lists that are longer than this may have none."""
        read = len(self.rows)
        if self.total is None and read <= most_uncounted:
            self.missing = self.missing or _NO_TOTAL
        elif read < (self.total or 0):
            text = f"{read:,} of {self.total:,} were listed"
            self.missing = self.missing or Missing(Outcome.INCOMPLETE, text)


async def repeat_until_agreed(read: Callable[[], Awaitable[RowListing[Row]]]) -> RowListing[Row]:
    """The rows of a list that its host does not sort, as two readings in a row have them.

    When a row goes between two pages, and another comes behind the last, a third one moves to a
    page that was read, and the total is right without it. The next reading does not have the one
    that went. A list of one page is always whole.
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
    spec: Entity = {
        "type": _find_type(one.topics),
        "lifecycle": "deprecated" if one.is_archived else "production",
    }
    if owner is not None:
        spec["owner"] = owner
    made = make_metadata(place, "component", one.name, one.description)
    if tags := _make_tags(one):
        made["tags"] = tags
    made["annotations"] = make_annotations(one, "")
    return {"apiVersion": API_VERSION, "kind": "Component", "metadata": made, "spec": spec}


def annotate_entity(one: HostedRepository, entity: Entity, path: str) -> Entity:
    """An entity of a file with the annotations of its repository, unless it has its own."""
    found = entity.get("metadata")
    if not isinstance(found, dict):
        return entity
    own = found.get("annotations")
    if not (own is None or isinstance(own, dict)):
        return entity
    given = {**make_annotations(one, posixpath.dirname(path)), **(own or {})}
    return {**entity, "metadata": {**found, "annotations": given}}


def qualify_owner(place: Place, entity: Entity) -> Entity:
    """An entity of a file, whose owner without a namespace is the group of the place.

    Where the place has no group of that name, and in an entity with a namespace of its own, it
    stays as it is.
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
    """The metadata of an entity of a place, made of what the host calls so."""
    found: Entity = {"name": place.name_of(kind, name)}
    if (namespace := place.namespace_of(kind)) != DEFAULT_NAMESPACE:
        found["namespace"] = namespace
    if description and description.strip():
        found["description"] = description.strip()
    return found


class KnownOwners(NamedTuple):
    """Teams and people who may own something, by their names in lower case; None: not known.

    A team of another organization never is one of them, nor is somebody who left.
    """

    teams: Collection[str] | None
    people: Collection[str] | None

    def first(self, place: Place, owners: Iterable[str]) -> str | None:
        """The reference of the first of these owners, as CODEOWNERS names them, that may be one."""
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
    """The owners that the last line for everything in a CODEOWNERS file names.

    It has one of these patterns. With `sections`, as GitLab has them, a line without owners has
    those of its section.
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


def _find_type(topics: Iterable[str]) -> str:
    """The type that a topic such as `type-service` names."""
    named = (topic.removeprefix(_TYPE_TOPIC) for topic in topics if topic.startswith(_TYPE_TOPIC))
    return next(filter(None, named), "repository")


def _make_tags(one: HostedRepository) -> list[str]:
    language = one.language.lower().replace(" ", "-")
    names = [topic for topic in one.topics if not topic.startswith(_TYPE_TOPIC)]
    return [tag for tag in dict.fromkeys([*names, language]) if valid_tag(tag)]
