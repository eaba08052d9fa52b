"""Guards: the content of a part's set after a reading, and the removals that wait for a person."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from factbook.catalog.sets import Prepared
from factbook.importers.snapshot import SnapshotPart

# From so many removals on, a reading may remove a tenth of a part; fewer may be half of it.
_SEVERAL: Final = 3

EMPTY: Final = "nothing was found where there was something"
MANY: Final = "{count} of {total} would be removed, which is more than {share} of the part"
NARROWER: Final = "the credential sees less than before: {rights}"


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
    """The wanted content of a set, in order; `held` are the removals that wait, and the reason.

    `undecided` may be gone, too: a reading of everything decides about them. What is `there` was
    found, or came from an origin that exists but could not be read whole.
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
        """True if the stored set has another content."""
        before = {member.prepared.ref: member.prepared.etag for member in stored}
        return before != {prepared.ref: prepared.etag for prepared in self.wanted}


def merged(
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
    new = {
        one.prepared.ref: one
        for one in found
        if _may_change(part, here, one) and not _stands_in(part, one, origins, unread)
    }
    # A new thing under the name of another one is added once that one is gone.
    fresh = {ref: one for ref, one in new.items() if _is_another(here.get(ref), one)}
    missing = [member for ref, member in here.items() if ref not in new or ref in fresh]
    there = {m.prepared.ref for m in missing if m.origin in unread}
    moves = _moves(missing, list(fresh.values()))
    unread = {*unread, *(m.origin for m in missing if not _was_read(part, m))}
    absent = [m for m in missing if m.prepared.ref not in moves and m.origin not in unread]
    replaced = _replaced(part, absent, fresh, doubt)
    unproven = [member for member in absent if member.prepared.ref not in replaced]
    removable, held, reason = _sorted_out(part, unproven, len(here), doubt)
    gone = _gone({*removable, *replaced, *moves}, moves, here)
    come = {ref for ref in fresh if ref not in here or ref in gone}
    there.update({one.prepared.ref for one in found} - (fresh.keys() - come))
    kept = [
        member.prepared if ref in fresh else _next(member, new, unread)
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
        _undecided(part, missing, absent) - gone - doubt.spared,
        frozenset(there),
    )


def _replaced(
    part: SnapshotPart, absent: Sequence[StoredMember], fresh: Collection[str], doubt: Doubt
) -> set[str]:
    """The references that other things have now: proof that need not wait, unless it is of many."""
    found = {member.prepared.ref for member in absent} & set(fresh) - doubt.spared
    return found if part.complete and len(found) < _SEVERAL else set()


def _gone(gone: set[str], moves: Mapping[str, str], here: Collection[str]) -> set[str]:
    """Names that are left, without moves to one that something else keeps."""
    while blocked := {old for old in gone if (new := moves.get(old)) in here and new not in gone}:
        gone = gone - blocked
    return gone


def _is_another(member: StoredMember | None, one: Candidate) -> bool:
    """True for what is not stored, and for what only has the name of a stored thing."""
    if member is None or member.external_id == one.external_id:
        return member is None
    return bool(member.external_id and one.external_id)


def _sorted_out(
    part: SnapshotPart, absent: Sequence[StoredMember], count: int, doubt: Doubt
) -> tuple[list[str], list[str], str]:
    """The references to remove of `count`, those to hold, and the reason for holding them."""
    refs = sorted({member.prepared.ref for member in absent} - doubt.spared)
    if not part.complete:
        return [], [], ""
    if part.only is not None:
        # Too many at once are left to a reading of everything, which holds them.
        return ([] if _excess(len(refs), count) else refs), [], ""
    lost = sorted(doubt.rights - part.rights)
    if refs and lost:
        return [], refs, NARROWER.format(rights=", ".join(lost))
    if refs and not part.items:
        return [], refs, EMPTY
    if excess := _excess(len(refs), count):
        return [], refs, excess
    return refs, [], ""


def _excess(removals: int, count: int) -> str:
    """The reason to hold so many removals from a part of `count` entities; empty for none."""
    if removals * 2 > count:
        share = "half"
    elif removals >= _SEVERAL and removals * 10 > count:
        share = "a tenth"
    else:
        return ""
    return MANY.format(count=f"{removals:,}", total=f"{count:,}", share=share)


def _undecided(
    part: SnapshotPart, missing: Sequence[StoredMember], absent: Sequence[StoredMember]
) -> frozenset[str]:
    """The references that a reading of some origins did not find, and may not remove."""
    if part.only is None:
        return frozenset()
    lost = [member for member in missing if member.origin in part.lost]
    return frozenset(m.prepared.ref for m in (*lost, *(absent if part.complete else ())))


def _was_read(part: SnapshotPart, member: StoredMember) -> bool:
    return part.only is None or member.origin in part.only


def _may_change(part: SnapshotPart, here: Mapping[str, StoredMember], one: Candidate) -> bool:
    """False for what came from an origin that was not read."""
    member = here.get(one.prepared.ref)
    return member is None or _was_read(part, member)


def _stands_in(
    part: SnapshotPart, one: Candidate, origins: Collection[str], unread: Collection[str]
) -> bool:
    """True for what only stands in for an origin that was not read, and has entities."""
    former = part.former.get(one.origin, frozenset())
    is_there = one.origin in origins or not former.isdisjoint(origins)
    return one.tentative and one.origin in unread and is_there


def _moves(missing: Sequence[StoredMember], new: Sequence[Candidate]) -> dict[str, str]:
    """Old to new reference of each thing that has another name now."""
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


def _next(member: StoredMember, new: Mapping[str, Candidate], unread: Collection[str]) -> Prepared:
    """The next form of an entity that stays; a namesake is none of what could not be read."""
    one = new.get(member.prepared.ref)
    if one is None or one.tentative or (member.origin in unread and one.origin != member.origin):
        return member.prepared
    return one.prepared
