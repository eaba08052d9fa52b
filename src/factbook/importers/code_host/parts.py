"""Parts of a snapshot of a code host: the repositories of an owner, and people."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from factbook.catalog.people_trust import PEOPLE_FILES
from factbook.importers.catalog_info import reader
from factbook.importers.catalog_info.locations import FileLocation
from factbook.importers.catalog_info.reader import RepositoryReading, RootFile
from factbook.importers.code_host import entities
from factbook.importers.code_host.files import HEAD, HostedFiles, OtherRepository
from factbook.importers.code_host.kind import CodeHostImportOptions
from factbook.importers.code_host.repository import (
    HostedRepository,
    OwnerOf,
    Place,
    RootContent,
)
from factbook.importers.snapshot import (
    GENERATED,
    ImportedItem,
    ReadingProblem,
    SnapshotPart,
)
from factbook.outbound.outcomes import Missing, Outcome

# Of a file itself, whoever reads it.
_UNUSABLE: Final = frozenset({Outcome.TOO_LARGE, Outcome.NOT_APPLICABLE})
_PEOPLE: Final = frozenset({"group", "user"})
_STAYS: Final = "so what it brought before stays: write one, or delete the file"
_NO_ENTITY: Final = f"holds no entity, {_STAYS}"
_NO_TARGET: Final = f"has locations that lead to no entity, {_STAYS}"


def chosen(
    listed: Iterable[HostedRepository],
    options: CodeHostImportOptions,
    left_out: Counter[str],
    word: str,
) -> list[HostedRepository]:
    """The repositories that the options do not leave out, which are counted as `word`."""
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
    """Maker of the part of the repositories; `kind` names one, and `word` several.

    `former` are the origins that one had under other names.
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
        # Those of which no file with entities can be read, until they change.
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
        read = await reader.read(list(found.values()), files)
        # Of all files not one was readable.
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
                self._sort_out(one, self._of_files(one, read[origin]))
            if origin in read and read[origin].says_nothing:
                # What the file brought before stays; else the repository is as one without it.
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
        """Note the repositories whose files others name, and those that were not read again."""
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
        """The part of the users and groups of files, read as completely as that of repositories.

        There is none unless the settings name repositories with them.
        """
        if not self._people_from:
            return []
        key = part_key(self._place, PEOPLE_FILES)
        people = tuple(self._people)
        return [replace(part, key=key, items=people, problems=(), stand_ins=())]

    def part(
        self,
        missing: Missing | None,
        rights: Iterable[str],
        listed: Sequence[HostedRepository] | None = None,
    ) -> SnapshotPart:
        """The part; `missing` is the reason if not all repositories were listed.

        With all that were `listed` it has a problem for each of `people_from` that names none.
        """
        problems = list(self._problems)
        if listed is not None and missing is None:
            problems += self._unmatched([one.slug.lower() for one in listed])
        if missing is not None:
            text = f"{self._word}: {_reason(self._place, missing)}"
            problems.append(ReadingProblem(self._place.origin, text))
        return SnapshotPart(
            part_key(self._place, self._word),
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
        """A problem for each pattern of this owner that names no repository."""
        for pattern in self._people_from:
            is_here = pattern.startswith(f"{self._place.login.lower()}/")
            if is_here and not any(_is_named(slug, pattern) for slug in slugs):
                text = f"people_from: {pattern} matches no repository; correct it, or take it out"
                yield ReadingProblem(self._place.origin, text)

    def _root_files(
        self, wanted: Iterable[HostedRepository], roots: Mapping[int, RootContent]
    ) -> Iterator[tuple[str, RootFile]]:
        """The root file of each repository that has one; notes those that cannot be read."""
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
        """The entities of a repository's files; the only component of one is that repository.

        Files in another repository are about that one.
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
            is_person = _kind(each.entity) in _PEOPLE
            entity = entities.owned(self._place, each.entity)
            yield ImportedItem(
                entities.annotated(about, entity, path) if about else entity,
                origin,
                self._id(about) if about and is_it else "",
                path if is_own else f"{each.location.repository}/{path}",
                each.document.line,
                each.document.lines,
                tentative=each.tentative,
                known_only=is_person and not self._may_add_people(one, each.location),
            )

    def _sort_out(self, one: HostedRepository, items: Iterable[ImportedItem]) -> None:
        """Put users and groups that a repository may add into the part of their own."""
        for item in items:
            is_added = _kind(item.entity) in _PEOPLE and not item.known_only
            (self._people if is_added else self._items).append(item)

    def _may_add_people(self, one: HostedRepository, location: FileLocation) -> bool:
        """True if the settings name both the repository and the one of the file.

        Files on other branches than the default one may never have been reviewed.
        """
        return location.ref == HEAD and all(
            any(_is_named(slug.lower(), pattern) for pattern in self._people_from)
            for slug in (one.slug, location.repository)
        )

    def _made(self, one: HostedRepository, root: RootContent) -> ImportedItem:
        """The component of a repository without a catalog file."""
        owner = self._owner_of(one, root)
        entity = entities.component(self._place, one, owner.ref)
        origin = self._place.origin_of(one.slug)
        tentative = not owner.certain
        return ImportedItem(
            entity, origin, self._id(one), tentative=tentative, marks=GENERATED, raw=one
        )

    def _id(self, one: HostedRepository) -> str:
        return self._place.id_of(self._kind, one.number)


def person(
    place: Place,
    kind: str,
    number: int,
    entity: dict[str, Any],
    raw: Any = None,
    *,
    tentative: bool = False,
) -> ImportedItem:
    """The item of a group or user, which is its own origin; `raw` is what the host says of it."""
    external_id = place.id_of(kind, number)
    return ImportedItem(entity, external_id, external_id, tentative=tentative, raw=raw)


def people_part(
    place: Place,
    word: str,
    items: Sequence[ImportedItem],
    missing: Iterable[Missing],
    rights: Iterable[str],
) -> SnapshotPart:
    """A part of groups or users; `missing` are reasons if not all were read."""
    problems = [ReadingProblem(place.origin, f"{word}: {_reason(place, each)}") for each in missing]
    key, complete = part_key(place, word), not problems
    return SnapshotPart(key, complete, tuple(items), tuple(problems), rights=frozenset(rights))


def part_key(place: Place, word: str) -> str:
    """The key of a part; a colon stands for a slash, which no name of a host has."""
    return f"{place.login.lower().replace('/', ':')}.{word}"


def _reason(place: Place, missing: Missing) -> str:
    """The reason that a list of an organization or group was not read."""
    if missing.outcome is Outcome.NOT_FOUND and not missing.detail:
        return f"there is no {place.login} at {place.host}, or the credential may not see it"
    return missing.reason


def _is_named(slug: str, pattern: str) -> bool:
    return slug.startswith(pattern[:-1]) if pattern.endswith("*") else slug == pattern


def _is_component(entity: Mapping[str, Any]) -> bool:
    return _kind(entity) == "component"


def _kind(entity: Mapping[str, Any]) -> str:
    return str(entity.get("kind", "")).lower()
