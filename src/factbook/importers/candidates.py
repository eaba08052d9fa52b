"""Checks of what was read: from imported items to entities ready to store, and problems."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog import identity, kinds, people_trust, sets
from factbook.catalog.push_rules import PushRules
from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.catalog.sets import Prepared
from factbook.catalog.store.stored_sets import StoredItem
from factbook.errors import InvalidItemsError
from factbook.importers.merge import Candidate, StoredMember
from factbook.importers.snapshot import (
    ImportedItem,
    ReadingProblem,
    Snapshot,
    SnapshotPart,
    set_name,
)

_UNTRUSTED: Final = (
    "{ref} isn't imported: files add users and groups only in repositories that people_from of "
    "the importer names"
)


@dataclass
class CheckedPart:
    """Part of a snapshot with its valid entities; `unread` are the origins to leave alone.

    `invalid` are those that hold entities of which none is valid.
    """

    part: SnapshotPart
    found: list[Candidate] = field(default_factory=list)
    problems: list[ReadingProblem] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)
    invalid: set[str] = field(default_factory=set)

    @property
    def whole(self) -> bool:
        """True if nothing has to be read again, and anything was read that could be."""
        found = any(one.origin not in self.invalid for one in self.found)
        read = bool(found or not self.unread)
        return self.part.complete and not self.part.failed and read


class ImportMarks:
    """Annotations by which a stored entity says what it was imported from."""

    def __init__(self, rules: PushRules) -> None:
        domain = rules.annotator.domain
        self._domain = domain
        self._origin = f"{domain}/{people_trust.ORIGIN_MARK}"
        self.id_key = f"{domain}/{identity.EXTERNAL_ID}"

    def marked(self, item: ImportedItem) -> Mapping[str, Any]:
        """The entity with the annotations; one of another form is left for the check to refuse."""
        metadata = item.entity.get("metadata")
        if not isinstance(metadata, dict):
            return item.entity
        own = metadata.get("annotations")
        if own is not None and not isinstance(own, dict):
            return item.entity
        marks = self._origin, self.id_key, f"{self._domain}/{identity.GENERATED}"
        given = {key: value for key, value in (own or {}).items() if key not in marks}
        given |= {f"{self._domain}/{name}": value for name, value in item.marks.items()}
        given[self._origin] = item.origin
        if item.external_id:
            given[self.id_key] = item.external_id
        return {**item.entity, "metadata": {**metadata, "annotations": given}}

    def member(self, stored: StoredItem) -> StoredMember:
        """A stored entity with what it says."""
        entity = msgspec.json.decode(stored.document)
        said = entity["metadata"].get("annotations", {})
        origin, external_id = said.get(self._origin, ""), said.get(self.id_key, "")
        return StoredMember(sets.unchanged(stored.ref, stored.document), origin, external_id)


def checked(
    importer: str,
    snapshot: Snapshot,
    rules: PushRules,
    known: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> list[CheckedPart]:
    """The parts with their valid entities; of several with one reference, the first counts.

    An entity that a team wrote in a file comes before one that the importer made up, but what a
    code host says of people comes before files in its repositories. An origin with an invalid
    entity is as one that could not be read whole. `known` has the origin of each stored entity by
    its reference, for parts with items that are only to be changed.
    """
    seen = dict[str, ImportedItem]()
    done, claims = list[CheckedPart](), list[_Claim]()
    for part in snapshot.parts:
        one = CheckedPart(part, problems=list(part.problems), unread=set(part.unread))
        claims += _claims(importer, one, part.items, rules, known.get(part.key, {}))
        one.unread.update(*(part.former.get(origin, ()) for origin in one.unread))
        done.append(one)
    valid_in = {claim.item.origin for claim in claims if _is_content(claim.item)}
    for one in done:
        one.invalid -= valid_in
        found = [item for item in one.part.stand_ins if item.origin in one.invalid]
        claims += _claims(importer, one, found, rules)
    for claim in sorted(claims, key=lambda claim: (claim.rank, claim.made)):
        item, prepared = claim.item, claim.prepared
        first = seen.setdefault(prepared.ref, item)
        if first is not item:
            claim.part.problems.append(item.problem(_twice(prepared.ref, first)))
            continue
        given = prepared, item.origin, item.external_id, item.tentative
        claim.part.found.append(Candidate(*given))
    return done


class _Claim(NamedTuple):
    """Valid entity that asks for its reference; one that the importer `made` comes last."""

    rank: int
    made: bool
    part: CheckedPart
    item: ImportedItem
    prepared: Prepared


def _claims(
    importer: str,
    checked: CheckedPart,
    items: Iterable[ImportedItem],
    rules: PushRules,
    known: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[_Claim]:
    """The valid entities among items of a part; notes the problems of the others."""
    part, marks = checked.part, ImportMarks(rules)
    name = set_name(importer, part.key)
    rank = -people_trust.precedence(name)
    for item in items:
        if problem := rules.kinds.problem(name, item.entity.get("kind")):
            checked.problems.append(item.problem(problem, "kind"))
            continue
        try:
            raw = msgspec.Raw(msgspec.json.encode(marks.marked(item)))
            [prepared] = sets.prepare_one(raw, name, rules).items
        except InvalidItemsError as error:
            checked.problems += _problems(item, error.problem_list)
            _note_invalid(checked, item)
            continue
        except (TypeError, ValueError, RecursionError) as error:
            checked.problems.append(item.problem(f"cannot be written as JSON: {error}"))
            _note_invalid(checked, item)
            continue
        if item.known_only and not _is_known(part, item, known.get(prepared.ref)):
            checked.problems.append(item.problem(_UNTRUSTED.format(ref=prepared.ref), "kind"))
            continue
        if prepared.problems:
            checked.problems += _references(item)
        yield _Claim(rank, item.raw is not None, checked, item, prepared)


def _note_invalid(checked: CheckedPart, item: ImportedItem) -> None:
    checked.unread.add(item.origin)
    checked.invalid.add(item.origin)


def _is_content(item: ImportedItem) -> bool:
    """True for an entity that is more than the way to others."""
    return str(item.entity.get("kind")).lower() != "location"


def _references(item: ImportedItem) -> Iterator[ReadingProblem]:
    """A problem for each reference that no entity can have; the entity is without the relation."""
    kind, spec = str(item.entity.get("kind")).lower(), item.entity.get("spec")
    if isinstance(spec, dict):
        for field, message in kinds.derive_relations(kind, DEFAULT_NAMESPACE, spec)[1]:
            path = f"spec.{field}"
            yield item.problem(message.removeprefix(f"{path}: "), path)


def _is_known(part: SnapshotPart, item: ImportedItem, origin: str | None) -> bool:
    """True if the entity of an item is in the catalog, and came from the same origin."""
    return origin is not None and origin in {item.origin, *part.former.get(item.origin, ())}


def _problems(item: ImportedItem, found: Iterable[Mapping[str, str]]) -> Iterator[ReadingProblem]:
    for problem in found:
        path = problem["path"].removeprefix("$")
        yield item.problem(problem["message"], path)


def _twice(ref: str, first: ImportedItem) -> str:
    place = first.problem("").place
    return f"{ref} comes from {place} too, which counts"
