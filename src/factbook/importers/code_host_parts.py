"""Parts of a snapshot of a code host: the repositories of an owner, and people.

Each place that an importer reads has a lasting namespace with unique names. Former names of
repositories are remembered, to match entities with their present origin.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from factbook.catalog.people_trust import PEOPLE_FILES
from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.importers import catalog_files, code_hosts
from factbook.importers.catalog_files import FileLocation, RepositoryReading, RootFile
from factbook.importers.code_hosts import (
    HEAD,
    CodeHostImportOptions,
    HostedFiles,
    HostedRepository,
    OtherRepository,
    OwnerOf,
    Place,
    RootContent,
)
from factbook.importers.snapshot import (
    GENERATED,
    NAMESPACES,
    ImportedItem,
    ReadingProblem,
    SnapshotPart,
    assign_lasting_names,
    get_kept_names,
)
from factbook.integrations.integration import get_stored_entry, store_entry
from factbook.outbound.cache import Memory
from factbook.outbound.outcomes import Missing, Outcome

# Reasons that lie in the file itself, whoever reads it.
_UNUSABLE: Final = frozenset({Outcome.TOO_LARGE, Outcome.NOT_APPLICABLE})
_PEOPLE: Final = frozenset({"group", "user"})
_STAYS: Final = "so its earlier entities stay: write one, or delete the file"
_NO_ENTITY: Final = f"holds no entity, {_STAYS}"
_NO_TARGET: Final = f"has locations that lead to no entity, {_STAYS}"

_MOST_FORMER_NAMES: Final = 10

_NO_NAME: Final = re.compile(r"[^a-z0-9]+")


def choose_repositories(
    listed: Iterable[HostedRepository],
    options: CodeHostImportOptions,
    left_out: Counter[str],
    word: str,
) -> list[HostedRepository]:
    """The repositories to import; those left out by the options are counted as `word`."""
    found = []
    for one in listed:
        if one.is_deleted:
            left_out[f"{word} marked for deletion"] += 1
        elif one.is_archived and not options.archived:
            left_out[f"archived {word}"] += 1
        elif one.is_fork and not options.forks:
            left_out["forks"] += 1
        else:
            found.append(one)
    return found


class RepositoryPart:
    """Builder of the repositories part; `kind` is the singular noun, `word` the plural.

    `former` has the origins of a repository under earlier names.
    """

    def __init__(
        self,
        place: Place,
        kind: str,
        word: str,
        owner_of: OwnerOf,
        former: Mapping[str, frozenset[str]],
        people_from: Sequence[str] = (),
    ) -> None:
        self._place = place
        self._kind = kind
        self._word = word
        self._owner_of = owner_of
        self._former = former
        self._people_from = [pattern.lower() for pattern in people_from]
        self._people: list[ImportedItem] = []
        self._items: list[ImportedItem] = []
        self._stand_ins: list[ImportedItem] = []
        self._problems: list[ReadingProblem] = []
        self._unread: set[str] = set()
        # Repositories without any readable entity file, until they change.
        self._unreadable: set[str] = set()
        self._failed = False
        self._others: dict[str, OtherRepository] = {}

    async def read(
        self,
        wanted: Sequence[HostedRepository],
        roots: Mapping[int, RootContent],
        files: HostedFiles,
        *,
        whole: bool,
    ) -> None:
        """Read the catalog files of repositories, and make components of those without one.

        Not `whole` if there may be other repositories.
        """
        found = dict(self._root_files(wanted, roots))
        for origin, root in list(found.items()):
            if reason := await files.cut_off(root.location):
                self._cannot(origin, ReadingProblem(origin, reason, root.location.path))
                self._unreadable.add(origin)
                del found[origin]
        read = await catalog_files.read_catalog_files(list(found.values()), files)
        # Not a single file was readable.
        self._failed |= bool(read or self._unreadable) and all(
            one.problems and not one.entities and not one.templates for one in read.values()
        )
        for origin, reading in read.items():
            if reading.cut_off:
                files.note_cut_off(found[origin].location, reading.cut_off)
            self._failed |= reading.failed
            if files.held_before(reading.templates):
                self._unread.add(origin)
            files.note_entities(each.location for each in reading.entities)
        await self._note_others(wanted, read, files, whole=whole)
        for one in wanted:
            origin = self._place.origin_of(one.slug)
            other = self._others.get(one.slug.lower())
            is_elsewhere = other is not None and other.is_component
            if origin in read:
                for item in self._of_files(one, read[origin]):
                    is_added = _read_kind(item.entity) in _PEOPLE and not item.known_only
                    (self._people if is_added else self._items).append(item)
            if origin in read and read[origin].says_nothing:
                # Earlier entities stay; without any, the repository counts as having no file.
                self._unread.add(origin)
                if not read[origin].problems:
                    place = found[origin].location.path
                    text = _NO_TARGET if read[origin].entities else _NO_ENTITY
                    self._problems.append(ReadingProblem(origin, text, place))
                self._unreadable.add(origin)
            if is_elsewhere:
                continue
            made = self._made(one, roots[one.number])
            is_cut_off = origin in read and read[origin].cut_off and read[origin].is_bare
            if origin in self._unreadable or is_cut_off:
                self._items.append(replace(made, tentative=True))
            elif origin in read and not read[origin].failed:
                self._stand_ins.append(replace(made, tentative=True))
            elif not (origin in read or origin in self._unread):
                self._items.append(made)

    async def _note_others(
        self,
        wanted: Iterable[HostedRepository],
        read: Mapping[str, RepositoryReading],
        files: HostedFiles,
        *,
        whole: bool,
    ) -> None:
        """Note the repositories with files named by others, and those that were not read again."""
        before = await files.others(self._place)
        origins = {self._place.origin_of(one.slug) for one in wanted}
        unread = self._unread | {origin for origin, each in read.items() if not each.whole}
        again = {slug: one for slug, one in before.items() if one.by in unread}
        if not whole:
            again |= {slug: one for slug, one in before.items() if one.by not in origins}
        named: dict[str, set[str]] = {}
        components: Counter[str] = Counter()
        for origin, reading in read.items():
            for each in reading.entities:
                slug = each.location.repository.lower()
                components[slug] += _is_component(each.entity)
                if self._place.origin_of(each.location.repository) != origin:
                    named.setdefault(slug, set()).add(origin)
        self._others = again
        for slug, by in named.items():
            known = files.repository(slug) or (before[slug].repository if slug in before else None)
            if known is not None and slug not in again:
                is_here = slug.startswith(f"{self._place.login.lower()}/")
                is_component = is_here and components[slug] == 1
                self._others[slug] = OtherRepository(min(by), known, is_component)
        if self._others != before:
            await files.keep_others(self._place, self._others)

    def people(self, part: SnapshotPart) -> list[SnapshotPart]:
        """The part of users and groups in files, as complete as the repositories part.

        Empty unless the settings name repositories with people.
        """
        if not self._people_from:
            return []
        key = make_part_key(self._place, PEOPLE_FILES)
        people = tuple(self._people)
        return [replace(part, key=key, items=people, problems=(), stand_ins=())]

    def part(
        self,
        missing: Missing | None,
        rights: Iterable[str],
        listed: Sequence[HostedRepository] | None = None,
    ) -> SnapshotPart:
        """The part; `missing` is the reason if not all repositories were listed.

        With all `listed` repositories, each pattern in `people_from` without a match is a problem.
        """
        problems = list(self._problems)
        if listed is not None and missing is None:
            problems += self._unmatched([one.slug.lower() for one in listed])
        if missing is not None:
            text = f"{self._word}: {_explain_unread(self._place, missing)}"
            problems.append(ReadingProblem(self._place.origin, text))
        return SnapshotPart(
            make_part_key(self._place, self._word),
            missing is None,
            tuple(self._items),
            tuple(problems),
            frozenset(self._unread),
            frozenset(rights),
            self._former,
            failed=self._failed,
            stand_ins=tuple(self._stand_ins),
        )

    def _unmatched(self, slugs: Sequence[str]) -> Iterator[ReadingProblem]:
        """A problem for each pattern of this owner without a matching repository."""
        for pattern in self._people_from:
            is_here = pattern.startswith(f"{self._place.login.lower()}/")
            if is_here and not any(_matches_pattern(slug, pattern) for slug in slugs):
                text = f"people_from: {pattern} matches no repository; correct it, or take it out"
                yield ReadingProblem(self._place.origin, text)

    def _root_files(
        self, wanted: Iterable[HostedRepository], roots: Mapping[int, RootContent]
    ) -> Iterator[tuple[str, RootFile]]:
        """The root file of each repository that has one; unreadable ones are noted."""
        for one in wanted:
            origin, root = self._place.origin_of(one.slug), roots[one.number]
            for missing in root.missing:
                text = f"a file cannot be read: {missing.reason}"
                self._cannot(origin, ReadingProblem(origin, text), missing)
            if root.catalog is None or origin in self._unread:
                continue
            path, content = root.catalog
            if isinstance(content, Missing):
                self._cannot(origin, ReadingProblem(origin, content.reason, path), content)
                if content.outcome in _UNUSABLE:
                    self._unreadable.add(origin)
            else:
                yield origin, RootFile(origin, FileLocation(one.slug, HEAD, path), content)

    def _cannot(self, origin: str, problem: ReadingProblem, why: Missing | None = None) -> None:
        self._problems.append(problem)
        self._unread.add(origin)
        self._failed |= why is not None and why.passing

    def _of_files(
        self, one: HostedRepository, reading: RepositoryReading
    ) -> Iterator[ImportedItem]:
        """The entities of a repository's files; a single component represents the repository.

        Files in another repository describe that repository.
        """
        origin = self._place.origin_of(one.slug)
        self._problems += reading.problems
        if not reading.whole:
            self._unread.add(origin)
        components = [
            each
            for each in reading.entities
            if _is_component(each.entity) and each.location.repository == one.slug
        ]
        for each in reading.entities:
            path = each.location.path
            is_own = each.location.repository == one.slug
            named = self._others.get(each.location.repository.lower())
            about = one if is_own else named and named.repository
            is_it = components == [each] if is_own else named is not None and named.is_component
            is_it = is_it and _is_component(each.entity)
            is_person = _read_kind(each.entity) in _PEOPLE
            entity = code_hosts.qualify_owner(self._place, each.entity)
            yield ImportedItem(
                code_hosts.annotate_entity(about, entity, path) if about else entity,
                origin,
                self._id(about) if about and is_it else "",
                path if is_own else f"{each.location.repository}/{path}",
                each.document.line,
                each.document.lines,
                tentative=each.tentative,
                known_only=is_person and not self._may_add_people(one, each.location),
            )

    def _may_add_people(self, one: HostedRepository, location: FileLocation) -> bool:
        """True if the settings name both the repository and the one of the file.

        Files on other branches than the default one may never have been reviewed.
        """
        return location.ref == HEAD and all(
            any(_matches_pattern(slug.lower(), pattern) for pattern in self._people_from)
            for slug in (one.slug, location.repository)
        )

    def _made(self, one: HostedRepository, root: RootContent) -> ImportedItem:
        """The component of a repository without a catalog file."""
        owner = self._owner_of(one, root)
        entity = code_hosts.make_component(self._place, one, owner.ref)
        origin = self._place.origin_of(one.slug)
        tentative = not owner.certain
        return ImportedItem(
            entity, origin, self._id(one), tentative=tentative, marks=GENERATED, raw=one
        )

    def _id(self, one: HostedRepository) -> str:
        return self._place.id_of(self._kind, one.number)


def make_person(
    place: Place,
    kind: str,
    number: int,
    entity: dict[str, Any],
    raw: Any = None,
    *,
    tentative: bool = False,
) -> ImportedItem:
    """The item of a group or user, which is its own origin; `raw` is the host's description."""
    external_id = place.id_of(kind, number)
    return ImportedItem(entity, external_id, external_id, tentative=tentative, raw=raw)


def make_people_part(
    place: Place,
    word: str,
    items: Sequence[ImportedItem],
    missing: Iterable[Missing],
    rights: Iterable[str],
) -> SnapshotPart:
    """A part of groups or users; `missing` are reasons if not all were read."""
    problems = [
        ReadingProblem(place.origin, f"{word}: {_explain_unread(place, each)}") for each in missing
    ]
    key, complete = make_part_key(place, word), not problems
    return SnapshotPart(key, complete, tuple(items), tuple(problems), rights=frozenset(rights))


def make_part_key(place: Place, word: str) -> str:
    """The key of a part; a slash becomes a colon, which never occurs in names on a host."""
    return f"{place.login.lower().replace('/', ':')}.{word}"


def _explain_unread(place: Place, missing: Missing) -> str:
    """The reason why a list of an organization or group was not read."""
    if missing.outcome is Outcome.NOT_FOUND and not missing.detail:
        return f"there is no {place.login} at {place.host}, or the credential may not see it"
    return missing.reason


def _matches_pattern(slug: str, pattern: str) -> bool:
    return slug.startswith(pattern[:-1]) if pattern.endswith("*") else slug == pattern


def _is_component(entity: Mapping[str, Any]) -> bool:
    return _read_kind(entity) == "component"


def _read_kind(entity: Mapping[str, Any]) -> str:
    return str(entity.get("kind", "")).lower()


class _KeptNames(msgspec.Struct, array_like=True):
    """Names of each repository by its number, the latest last."""

    slugs: dict[int, list[str]]


async def remember_former_names(
    memory: Memory, place: Place, listed: Iterable[HostedRepository]
) -> Mapping[str, frozenset[str]]:
    """The former origins of each renamed repository; remembers the present names.

    Names of unlisted repositories are kept too: these may only be hidden for now.
    """
    key = _make_former_names_key(place)
    stored = await get_stored_entry(memory, key, _KeptNames)
    slugs = dict(stored.slugs) if stored else {}
    former: dict[str, frozenset[str]] = {}
    for one in listed:
        others = [slug for slug in slugs.get(one.number, ()) if slug != one.slug]
        slugs[one.number] = [*others, one.slug][-_MOST_FORMER_NAMES:]
        if others:
            former[place.origin_of(one.slug)] = frozenset(map(place.origin_of, others))
    if stored is None or slugs != stored.slugs:
        await store_entry(memory, key, _KeptNames(slugs))
    return former


async def get_present_origins(memory: Memory, place: Place) -> frozenset[str]:
    """The origins of repositories under their latest names."""
    stored = await get_stored_entry(memory, _make_former_names_key(place), _KeptNames)
    slugs = stored.slugs.values() if stored else ()
    return frozenset(place.origin_of(names[-1]) for names in slugs if names)


def _make_former_names_key(place: Place) -> str:
    return f"names:{place.origin}"


class _KeptPlaces(msgspec.Struct, array_like=True):
    """Namespaces of entities and of people, by the place's login in lower case."""

    namespaces: dict[str, tuple[str, str]]


class _KeptMembers(msgspec.Struct, array_like=True):
    """Logins of the places of each person who is in several, by number."""

    places: dict[int, set[str]]


async def find_places(
    memory: Memory, host: str, logins: Iterable[str], namespace: str
) -> list[Place]:
    """The places of an importer, longest known first.

    The first place uses the namespace `default`, each further one a namespace of its own name.
    People may be in several places and use the namespace of the first one. A place keeps its
    namespace unless the settings give a `namespace`.
    """
    stored = await get_stored_entry(memory, _make_places_key(host), _KeptPlaces)
    known = dict(stored.namespaces) if stored else await _read_earlier_places(memory)
    wanted: dict[str, str] = {}
    for login in logins:
        wanted.setdefault(login.lower(), login)
    for login in wanted:
        people = next((found for _, found in known.values()), DEFAULT_NAMESPACE)
        if namespace:
            known[login] = namespace, namespace
        elif login not in known:
            known[login] = (_make_namespace(login) if known else DEFAULT_NAMESPACE), people
    if stored is None or known != stored.namespaces:
        await store_entry(memory, _make_places_key(host), _KeptPlaces(known))
    return [Place(host, wanted[login], *found) for login, found in known.items() if login in wanted]


async def _read_earlier_places(memory: Memory) -> dict[str, tuple[str, str]]:
    """Namespaces of places imported before namespaces were remembered.

    A single place used `default`, each of several a namespace of its own name.
    """
    stored = await memory.get(NAMESPACES)
    parts = msgspec.json.decode(stored, type=dict[str, list[str]]) if stored else {}
    found: dict[str, set[str]] = defaultdict(set)
    for part, namespaces in parts.items():
        found[part.rpartition(".")[0].replace(":", "/")].update(namespaces)
    known = {}
    for login, seen in found.items():
        own = _make_namespace(login)
        made = own if len(found) > 1 and own in seen else DEFAULT_NAMESPACE
        known[login] = made, made
    return known


async def name_groups(
    memory: Memory,
    place: Place,
    wanted: Mapping[str, str],
    numbers: Mapping[str, int],
    *,
    complete: bool,
) -> Place:
    """The place with a unique name for each group, by the host's name in lower case."""
    return place._replace(
        groups=await _make_names_unique(memory, place, "groups", wanted, numbers, complete=complete)
    )


async def restore_group_names(memory: Memory, place: Place) -> Place:
    """The place with its group names from the last full reading."""
    return place._replace(groups=await get_kept_names(memory, _make_names_key("groups", place)))


async def name_components(
    memory: Memory, place: Place, listed: Iterable[HostedRepository], *, complete: bool
) -> list[HostedRepository]:
    """The repositories, each with a unique name for its component."""
    every = {one.slug.lower(): one for one in listed}
    wanted = {slug: one.name for slug, one in every.items()}
    numbers = {slug: one.number for slug, one in every.items()}
    names = await _make_names_unique(
        memory, place, "repositories", wanted, numbers, complete=complete
    )
    return [replace(one, name=names[slug]) for slug, one in every.items()]


async def _make_names_unique(
    memory: Memory,
    place: Place,
    kind: str,
    wanted: Mapping[str, str],
    numbers: Mapping[str, int],
    *,
    complete: bool,
) -> dict[str, str]:
    """Names that no other place in the namespace uses for this kind.

    If several want the same name, the lowest number gets it.
    """
    stored = await get_stored_entry(memory, _make_places_key(place.host), _KeptPlaces)
    taken: list[str] = []
    for login, (namespace, people) in (stored.namespaces if stored else {}).items():
        if login != place.login.lower() and namespace == place.namespace:
            other = Place(place.host, login, namespace, people)
            taken += (await get_kept_names(memory, _make_names_key(kind, other))).values()
    key = _make_names_key(kind, place)
    ordered = {id_: wanted[id_] for id_ in sorted(wanted, key=lambda id_: numbers[id_])}
    return await assign_lasting_names(memory, key, ordered, numbers, complete=complete, taken=taken)


class Memberships:
    """Groups of the people in all places; a person in several belongs to the first only."""

    def __init__(self, memory: Memory, host: str) -> None:
        self._memory = memory
        self._name = f"members of several:{host}"
        self._groups: dict[int, set[str]] = defaultdict(set)
        self._places: dict[int, set[str]] = defaultdict(set)
        self._certain: set[str] = set()
        self._whole: set[str] = set()
        self._before: Mapping[int, set[str]] = {}
        self._of_first: set[int] = set()

    def add(
        self, place: Place, groups: Mapping[int, Iterable[str]], *, certain: bool, complete: bool
    ) -> None:
        """Add references of the groups of each member of a place, by the member's number.

        `certain`: all groups were read with their members. `complete`: there are no other
        members.
        """
        for number, refs in groups.items():
            self._groups[number].update(refs)
            self._places[number].add(place.login.lower())
        if certain:
            self._certain.add(place.login.lower())
        if complete:
            self._whole.add(place.login.lower())

    async def compare(self) -> None:
        """Look up the people who were in several places before, and remember those who are now."""
        stored = await get_stored_entry(self._memory, self._name, _KeptMembers)
        self._before = stored.places if stored else {}
        found: dict[int, set[str]] = {}
        for number in self._places.keys() | self._before.keys():
            places = self._places.get(number, set()) | (
                self._before.get(number, set()) - self._whole
            )
            if len(places) > 1:
                found[number] = places
        if found != self._before:
            await store_entry(self._memory, self._name, _KeptMembers(found))

    def first(self, number: int) -> bool:
        """True for the first place that asks about a person."""
        is_first = number not in self._of_first
        self._of_first.add(number)
        return is_first

    def of(self, number: int) -> Sequence[str]:
        """References of a person's groups, in order."""
        return sorted(self._groups[number])

    def uncertain(self, place: Place, number: int) -> bool:
        """True if a person may be in further groups of a place that was not read completely."""
        read = self._whole | (self._places[number] & self._certain)
        is_certain = place.login.lower() in self._certain
        return not is_certain or bool(self._before.get(number, set()) - read)


def _make_namespace(login: str) -> str:
    """The login as a namespace."""
    return _NO_NAME.sub("-", login.lower()).strip("-")[:63].rstrip("-") or DEFAULT_NAMESPACE


def _make_places_key(host: str) -> str:
    return f"places:{host}"


def _make_names_key(kind: str, place: Place) -> str:
    return f"names of {kind}:{place.namespace}:{place.origin.lower()}"
