"""Merge of a reading into the content of a set: checks, guards, and held removals."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from factbook.catalog import kinds, people_trust, ref, sets
from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.catalog.sets import Prepared, PushRules
from factbook.catalog.store.stored_sets import StoredItem
from factbook.errors import InvalidItemsError
from factbook.importers.snapshot import (
    ImportedItem,
    ReadingProblem,
    Snapshot,
    SnapshotPart,
    name_set,
)

# From this number on, removals may be up to a tenth of a part; fewer, up to half.
_SEVERAL_REMOVALS: Final = 3

EMPTY: Final = "nothing was found, although there were entities before"
MANY: Final = "{count} of {total} would be removed, which is more than {share} of the part"
NARROWER: Final = "the credential sees less than before: {rights}"

_UNTRUSTED: Final = (
    "{ref} isn't imported: files add users and groups only in repositories that people_from of "
    "the importer names"
)


class StoredMember(NamedTuple):
    """Entity of a stored set, with what it was imported from."""

    prepared: Prepared
    origin: str
    external_id: str


class Candidate(NamedTuple):
    """Valid entity of a reading."""

    prepared: Prepared
    origin: str
    external_id: str
    tentative: bool


class Doubt(NamedTuple):
    """Knowledge of a part from before.

    `rights` are those of the last complete reading. `spared` are references that a person keeps
    though they were not found.
    """

    rights: frozenset[str] = frozenset()
    spared: frozenset[str] = frozenset()


@dataclass(frozen=True)
class MergedPart:
    """The new content of a set, in order; `held` are waiting removals, with the `reason`.

    `undecided` references may be gone, too: a full reading decides. References in `there` were
    found, or came from an origin that exists but could not be read completely.
    """

    wanted: list[Prepared]
    removed: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)
    reason: str = ""
    spared: frozenset[str] = frozenset()
    moves: Mapping[str, str] = field(default_factory=dict)
    undecided: frozenset[str] = frozenset()
    there: frozenset[str] = frozenset()

    def changes(self, stored: Sequence[StoredMember]) -> bool:
        """True if the stored set has different content."""
        before = {member.prepared.ref: member.prepared.etag for member in stored}
        return before != {prepared.ref: prepared.etag for prepared in self.wanted}


def merge_part(
    part: SnapshotPart,
    stored: Sequence[StoredMember],
    found: Sequence[Candidate],
    unread: Collection[str],
    doubt: Doubt,
) -> MergedPart:
    """The content of a set after a reading, by the guards.

    An incomplete reading, and one with fewer rights, removes nothing; nor does any remove what came
    from an origin in `unread`. Removals above the limit, and those of all, are held.
    """
    here = {member.prepared.ref: member for member in stored}
    origins = {member.origin for member in stored}
    new: dict[str, Candidate] = {}
    for candidate in found:
        member = here.get(candidate.prepared.ref)
        may_change = member is None or _was_read(part, member)
        if may_change and not _stands_in(part, candidate, origins, unread):
            new[candidate.prepared.ref] = candidate
    fresh: dict[str, Candidate] = {}
    for name, candidate in new.items():
        member = here.get(name)
        known_id = member.external_id if member else ""
        differs = candidate.external_id and known_id and candidate.external_id != known_id
        # A new thing under the name of another one is added once that one is gone.
        if member is None or differs:
            fresh[name] = candidate
    missing = [member for ref, member in here.items() if ref not in new or ref in fresh]
    there = {m.prepared.ref for m in missing if m.origin in unread}
    moves = _find_moves(missing, list(fresh.values()))
    unread = {*unread, *(m.origin for m in missing if not _was_read(part, m))}
    absent = [m for m in missing if m.prepared.ref not in moves and m.origin not in unread]
    # Other things have these references now: proof that need not wait, unless it is of many.
    replaced = {member.prepared.ref for member in absent} & set(fresh) - doubt.spared
    if not part.complete or len(replaced) >= _SEVERAL_REMOVALS:
        replaced = set()
    unproven = [member for member in absent if member.prepared.ref not in replaced]
    removable, held, reason = _sort_removals(part, unproven, len(here), doubt)
    gone = _drop_blocked_moves({*removable, *replaced, *moves}, moves, here)
    come = {ref for ref in fresh if ref not in here or ref in gone}
    there.update({one.prepared.ref for one in found} - (fresh.keys() - come))
    kept = [
        member.prepared if ref in fresh else _choose_next(member, new, unread)
        for ref, member in here.items()
        if ref not in gone
    ]
    return MergedPart(
        [*kept, *(new[ref].prepared for ref in sorted(come))],
        sorted(gone),
        held,
        reason,
        doubt.spared & {member.prepared.ref for member in missing},
        {old: new for old, new in moves.items() if old in gone},
        _find_undecided(part, missing, absent) - gone - doubt.spared,
        frozenset(there),
    )


def _drop_blocked_moves(
    gone: set[str], moves: Mapping[str, str], here: Collection[str]
) -> set[str]:
    """The given-up references, without moves to a reference that another thing keeps."""
    while blocked := {old for old in gone if (new := moves.get(old)) in here and new not in gone}:
        gone = gone - blocked
    return gone


def _sort_removals(
    part: SnapshotPart, absent: Sequence[StoredMember], count: int, doubt: Doubt
) -> tuple[list[str], list[str], str]:
    """The references to remove of `count`, those to hold, and the reason for holding them."""
    refs = sorted({member.prepared.ref for member in absent} - doubt.spared)
    if not part.complete:
        return [], [], ""
    if part.only is not None:
        # Too many at once are left to a full reading, which holds them.
        return ([] if _explain_excess(len(refs), count) else refs), [], ""
    lost = sorted(doubt.rights - part.rights)
    if refs and lost:
        return [], refs, NARROWER.format(rights=", ".join(lost))
    if refs and not part.items:
        return [], refs, EMPTY
    if excess := _explain_excess(len(refs), count):
        return [], refs, excess
    return refs, [], ""


def _explain_excess(removals: int, count: int) -> str:
    """The reason to hold so many removals from a part of `count` entities; empty for none."""
    if removals * 2 > count:
        share = "half"
    elif removals >= _SEVERAL_REMOVALS and removals * 10 > count:
        share = "a tenth"
    else:
        return ""
    return MANY.format(count=f"{removals:,}", total=f"{count:,}", share=share)


def _find_undecided(
    part: SnapshotPart, missing: Sequence[StoredMember], absent: Sequence[StoredMember]
) -> frozenset[str]:
    """The references that a reading of some origins did not find, and may not remove."""
    if part.only is None:
        return frozenset()
    lost = [member for member in missing if member.origin in part.lost]
    return frozenset(m.prepared.ref for m in (*lost, *(absent if part.complete else ())))


def _was_read(part: SnapshotPart, member: StoredMember) -> bool:
    return part.only is None or member.origin in part.only


def _stands_in(
    part: SnapshotPart, one: Candidate, origins: Collection[str], unread: Collection[str]
) -> bool:
    """True for what only stands in for an origin that was not read, and has entities."""
    former = part.former.get(one.origin, frozenset())
    is_there = one.origin in origins or not former.isdisjoint(origins)
    return one.tentative and one.origin in unread and is_there


def _find_moves(missing: Sequence[StoredMember], new: Sequence[Candidate]) -> dict[str, str]:
    """Old to new reference of each renamed thing."""
    by_id: dict[str, list[str]] = {}
    for one in new:
        if one.external_id:
            by_id.setdefault(one.external_id, []).append(one.prepared.ref)
    found: dict[str, str] = {}
    for member in missing:
        names = by_id.get(member.external_id, [])
        if len(names) == 1 and names[0] not in found.values():
            found[member.prepared.ref] = names[0]
    return found


def _choose_next(
    member: StoredMember, new: Mapping[str, Candidate], unread: Collection[str]
) -> Prepared:
    """The next form of an entity that stays; a namesake is none of what could not be read."""
    one = new.get(member.prepared.ref)
    if one is None or one.tentative or (member.origin in unread and one.origin != member.origin):
        return member.prepared
    return one.prepared


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
        self.id_key = f"{domain}/{ref.EXTERNAL_ID}"

    def marked(self, item: ImportedItem) -> Mapping[str, Any]:
        """The entity with the annotations; one of another form is left for the check to refuse."""
        metadata = item.entity.get("metadata")
        if not isinstance(metadata, dict):
            return item.entity
        own = metadata.get("annotations")
        if own is not None and not isinstance(own, dict):
            return item.entity
        marks = self._origin, self.id_key, f"{self._domain}/{ref.GENERATED}"
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
        return StoredMember(
            sets.prepare_unchanged(stored.ref, stored.document), origin, external_id
        )


def check_snapshot(
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
        claims += _claim_items(importer, one, part.items, rules, known.get(part.key, {}))
        one.unread.update(*(part.former.get(origin, ()) for origin in one.unread))
        done.append(one)
    valid_in = {
        claim.item.origin
        for claim in claims
        if str(claim.item.entity.get("kind")).lower() != "location"
    }
    for one in done:
        one.invalid -= valid_in
        found = [item for item in one.part.stand_ins if item.origin in one.invalid]
        claims += _claim_items(importer, one, found, rules)
    for claim in sorted(claims, key=lambda claim: (claim.rank, claim.made)):
        item, prepared = claim.item, claim.prepared
        first = seen.setdefault(prepared.ref, item)
        if first is not item:
            place = first.problem("").place
            claim.part.problems.append(
                item.problem(f"{prepared.ref} comes from {place} too, which takes precedence")
            )
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


def _claim_items(
    importer: str,
    checked: CheckedPart,
    items: Iterable[ImportedItem],
    rules: PushRules,
    known: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[_Claim]:
    """The valid entities among items of a part; notes the problems of the others."""
    part, marks = checked.part, ImportMarks(rules)
    name = name_set(importer, part.key)
    rank = -people_trust.rank_set(name)
    for item in items:
        if problem := rules.kinds.problem(name, item.entity.get("kind")):
            checked.problems.append(item.problem(problem, "kind"))
            continue
        try:
            raw = msgspec.Raw(msgspec.json.encode(marks.marked(item)))
            [prepared] = sets.prepare_item(raw, name, rules).items
        except InvalidItemsError as error:
            for mistake in error.problem_list:
                path = mistake["path"].removeprefix("$")
                checked.problems.append(item.problem(mistake["message"], path))
            _note_invalid(checked, item)
            continue
        except (TypeError, ValueError, RecursionError) as error:
            checked.problems.append(item.problem(f"cannot be written as JSON: {error}"))
            _note_invalid(checked, item)
            continue
        if item.known_only:
            # The entity has to be in the catalog already, and from the same origin.
            origins = {item.origin, *part.former.get(item.origin, ())}
            if known.get(prepared.ref) not in origins:
                checked.problems.append(item.problem(_UNTRUSTED.format(ref=prepared.ref), "kind"))
                continue
        if prepared.problems:
            checked.problems += _find_reference_problems(item)
        yield _Claim(rank, item.raw is not None, checked, item, prepared)


def _note_invalid(checked: CheckedPart, item: ImportedItem) -> None:
    checked.unread.add(item.origin)
    checked.invalid.add(item.origin)


def _find_reference_problems(item: ImportedItem) -> Iterator[ReadingProblem]:
    """A problem for each reference that no entity can have; the entity is without the relation."""
    kind, spec = str(item.entity.get("kind")).lower(), item.entity.get("spec")
    if isinstance(spec, dict):
        for field, message in kinds.derive_relations(kind, DEFAULT_NAMESPACE, spec)[1]:
            path = f"spec.{field}"
            yield item.problem(message.removeprefix(f"{path}: "), path)
