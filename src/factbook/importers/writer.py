"""Writes of snapshots into sets, and decisions about removals that an importer holds.

Each part replaces its set through the push's own comparison.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from factbook.catalog import ref as entity_refs
from factbook.catalog import sets
from factbook.catalog.sets import PushRules
from factbook.catalog.store import stored_sets
from factbook.catalog.store.diff import Guards
from factbook.catalog.store.stored_sets import Actor, PushResult, SetChange
from factbook.errors import ConflictError, NotFoundError, PreconditionFailedError
from factbook.importers import records
from factbook.importers.merge import (
    CheckedPart,
    Doubt,
    ImportMarks,
    MergedPart,
    StoredMember,
    check_snapshot,
    merge_part,
)
from factbook.importers.records import ImportPartRecord
from factbook.importers.snapshot import PREFIX, ReadingProblem, Snapshot, name_set
from factbook.schemas.catalog import Difference
from factbook.storage import Database, Transaction, Write

T = TypeVar("T")

# Between reading and writing an import set, other writers only take entities from the set.
_MOST_ATTEMPTS: Final = 5
_OWNED: Final = "is owned by {}, and stays as it is there"
_LEFT_OUT: Final = "would be generated, and is left out: {} has it"
_AWAITED: Final = (
    "is still {} in {}; it moves once that part has been read completely and no longer has it"
)

_NOTHING_HELD: Final = "No removal of {name} waits for a decision."
_READ_AGAIN: Final = "{name} was read again since it was shown; nothing was written."


class ImportTarget(NamedTuple):
    """Catalog that snapshots are written into; `kept` revisions of each set stay."""

    database: Database
    rules: PushRules
    kept: int
    write: Write

    def saving(self, record: ImportPartRecord, before: ImportPartRecord | None) -> Write:
        """Runner of transactions that keeps what is known of a part in the same one.

        It raises PreconditionFailedError if the part is no longer as it was `before`.
        """
        return _Saving(self.write, record, before)


class _Saving:
    def __init__(
        self, write: Write, record: ImportPartRecord, before: ImportPartRecord | None
    ) -> None:
        self._write = write
        self._record = record
        self._before = before

    async def __call__(self, function: Callable[[Transaction], T], /) -> T:
        record, before = self._record, self._before

        def work(transaction: Transaction) -> T:
            result = function(transaction)
            records.save_part_record(transaction, record, before)
            return result

        return await self._write(work)


class PartResult(NamedTuple):
    """Result of writing a part, or of planning that.

    `moves` has the new reference of each entity by its former one. `undecided` may be gone, and no
    removal of them waits: a reading of everything decides.
    """

    record: ImportPartRecord
    set: str
    changes: Mapping[str, int]
    difference: Sequence[Difference]
    conflicts: Sequence[ReadingProblem]
    undecided: frozenset[str]
    moves: Mapping[str, str] = MappingProxyType({})


class StoredPart(NamedTuple):
    """Content of a set as it was read."""

    revision: int
    members: list[StoredMember]


async def write_snapshot(
    target: ImportTarget, importer: str, snapshot: Snapshot, now: int, *, dry_run: bool = False
) -> list[PartResult]:
    """Write each part into its set; entities of other owners are left out, with a problem each.

    Entities that moved between parts are written in a second round, after the first part gave them
    up.
    """
    known = await _read_known_origins(target, importer, snapshot)
    parts = await asyncio.to_thread(check_snapshot, importer, snapshot, target.rules, known)
    stated = {
        name_set(importer, part.part.key): {one.external_id for one in part.found} for part in parts
    }
    writer = _Writer(target, importer, now, stated, dry_run=dry_run)
    results = [await writer.part(part) for part in parts]
    if dry_run:
        return results
    own = f"{PREFIX}{importer}/"
    return [
        await writer.part(part) if any(own in p.message for p in result.conflicts) else result
        for part, result in zip(parts, results, strict=True)
    ]


class _Writer:
    def __init__(
        self,
        target: ImportTarget,
        importer: str,
        now: int,
        stated: Mapping[str, set[str]],
        *,
        dry_run: bool,
    ) -> None:
        self._target = target
        self._stated = stated
        self._importer = importer
        self._now = now
        self._dry_run = dry_run

    async def part(self, part: CheckedPart) -> PartResult:
        """Write one part."""
        name = name_set(self._importer, part.part.key)
        owned: dict[str, str] = {}
        taking = False
        for _ in range(_MOST_ATTEMPTS):
            # A decision may have changed what is known, too.
            before = await records.get_part_record(
                self._target.database, self._importer, part.part.key
            )  # fmt: skip
            stored = await get_stored_part(self._target, name)
            awaited = {} if self._dry_run else await self._awaited(part, stored, name)
            left_out = {*owned, *awaited}
            found = [one for one in part.found if one.prepared.ref not in left_out]
            doubt = before.doubt if before else Doubt()
            wanted = merge_part(part.part, stored.members, found, part.unread, doubt)
            items = {one.prepared.ref: one.origin for one in part.found}
            conflicts = [
                ReadingProblem(items[ref], f"{ref} {text}")
                for ref, text in (owned | awaited).items()
            ]
            record = self._record(part, wanted, before, conflicts)
            try:
                saving = self._target.saving(record, before)
                outcome = await self._replace(name, stored, wanted, saving, take=taking)
            except ConflictError as error:
                owners = {one["entityRef"]: one["owner"] for one in error.details["conflicts"]}
                others = await self._not_taken(part, owners)
                owned |= others
                taking = self._dry_run and len(owners) > len(others)
            except PreconditionFailedError:
                continue
            else:
                result = _make_result(record, name, wanted, outcome, conflicts)
                return result._replace(undecided=result.undecided.union(awaited))
        raise ConflictError(f"The set {name} was changed again and again; nothing was written.")

    async def _not_taken(self, part: CheckedPart, owners: Mapping[str, str]) -> dict[str, str]:
        """The references that stay with their owners, and why.

        The others are those of entities that an importer generated, and a file has here. Their sets
        give them up, so that the one of the file is another thing.
        """
        made = {
            one.prepared.ref
            for one in part.found
            if entity_refs.is_generated(one.prepared.document)
        }
        kept, given_up = dict[str, str](), dict[str, list[str]]()
        for ref, owner in owners.items():
            if ref in made:
                kept[ref] = _LEFT_OUT.format(owner)
                continue
            held = await stored_sets.read_item_by_ref(self._target.database, ref)
            if held is not None and held.set == owner and entity_refs.is_generated(held.document):
                given_up.setdefault(owner, []).append(ref)
            else:
                kept[ref] = _OWNED.format(owner)
        for owner, refs in given_up.items():
            if not self._dry_run:
                await self._give_up(owner, refs)
        return kept

    async def _give_up(self, owner: str, refs: Sequence[str]) -> None:
        """Remove entities from a set of another part."""
        target = self._target

        def decide(transaction: Transaction) -> tuple[SetChange, None]:
            return SetChange(gone=refs), None

        by = make_import_actor(self._importer, self._now)
        await stored_sets.change_set(
            target.write, owner, decide, by, target.rules, kept=target.kept
        )

    async def _awaited(self, part: CheckedPart, stored: StoredPart, name: str) -> dict[str, str]:
        """New names of things that another part has, and a reading no longer finds there.

        They move when that part has given them up; the texts say so. An event is about some
        repositories, so it waits for every part that it does not read.
        """
        here = {each.external_id for each in stored.members}
        new = {one.external_id: one.prepared.ref for one in part.found}
        ids = new.keys() - here - {""}
        own, waiting = f"{PREFIX}{self._importer}/", dict[str, str]()
        key = ImportMarks(self._target.rules).id_key
        for id_, ref, other in await stored_sets.find_holders(self._target.database, key, ids):
            stated = self._stated.get(other, None if part.part.only is None else set[str]())
            if other != name and other.startswith(own) and stated is not None and id_ not in stated:
                waiting[new[id_]] = _AWAITED.format(ref, other)
        return waiting

    async def _replace(
        self, name: str, stored: StoredPart, wanted: MergedPart, saving: Write, *, take: bool
    ) -> PushResult | None:
        """Replace the set if its content differs, and keep what is known of the part.

        A plan has to `take` what others would give up.
        """
        if not wanted.changes(stored.members):
            if not self._dry_run:
                await saving(lambda transaction: None)
            return None
        sets.check_set_size(len(wanted.wanted), self._target.rules)
        return await stored_sets.replace_set(
            self._target.database,
            name,
            wanted.wanted,
            make_import_actor(self._importer, self._now),
            Guards(if_match=str(stored.revision), take=take),
            kept=self._target.kept,
            dry_run=self._dry_run,
            write=None if self._dry_run else saving,
        )

    def _record(
        self,
        part: CheckedPart,
        wanted: MergedPart,
        before: ImportPartRecord | None,
        conflicts: Sequence[ReadingProblem],
    ) -> ImportPartRecord:
        if part.part.only is not None and before is not None:
            return _update_part_record(part, wanted, before, conflicts)
        doubt = before.doubt if before else Doubt()
        believed = part.whole and not wanted.held
        state = "held" if wanted.held else "complete" if believed else "partial"
        problems = [*part.problems, *conflicts]
        return ImportPartRecord(
            importer=self._importer,
            part=part.part.key,
            state=state,
            read_at=self._now,
            complete_at=self._now if believed else before and before.complete_at,
            items=len(wanted.wanted),
            problem_count=len(problems),
            problems=problems,
            held=wanted.held,
            reason=wanted.reason,
            spared=sorted(wanted.spared),
            # Rights shrink only when a person applies the held removals.
            rights=sorted(doubt.rights | part.part.rights if believed else doubt.rights),
            seen_rights=sorted(part.part.rights),
        )


def _update_part_record(
    part: CheckedPart,
    wanted: MergedPart,
    before: ImportPartRecord,
    conflicts: Sequence[ReadingProblem],
) -> ImportPartRecord:
    """The record after a reading of some origins: what is known of the others stays."""
    found = [*part.problems, *conflicts]
    # One that could not be read has its earlier problem again.
    told = {*(part.part.only or ()), *part.unread, *(one.origin for one in found)}
    problems = [one for one in before.problems if one.origin not in told]
    count = before.problem_count - len(before.problems) + len(problems) + len(found)
    stored = {one.ref for one in wanted.wanted}
    held = [ref for ref in before.held if ref in stored - wanted.there]
    return before._replace(
        items=len(wanted.wanted),
        problem_count=count,
        problems=[*problems, *found],
        held=held,
        reason=before.reason if held else "",
        state="complete" if before.state == "held" and not held else before.state,
    )


async def _read_known_origins(
    target: ImportTarget, importer: str, snapshot: Snapshot
) -> dict[str, dict[str, str]]:
    """The origins of stored entities by reference, of parts with items that add nothing."""
    found: dict[str, dict[str, str]] = {}
    for part in snapshot.parts:
        if any(item.known_only for item in part.items):
            stored = await get_stored_part(target, name_set(importer, part.key))
            found[part.key] = {one.prepared.ref: one.origin for one in stored.members}
    return found


async def get_stored_part(target: ImportTarget, name: str) -> StoredPart:
    """The content of a set as it is now."""
    try:
        content = await stored_sets.read_content(target.database, name)
    except NotFoundError:
        try:
            revision = (await stored_sets.read_set(target.database, name)).revision
        except NotFoundError:
            # The set never had any items.
            revision = 0
        return StoredPart(revision, [])
    marks = ImportMarks(target.rules)
    members = [marks.member(item) async for items in content.portions for item in items]
    return StoredPart(content.revision, members)


def make_import_actor(importer: str, now: int) -> Actor:
    """The importer as the writer of a set."""
    return Actor(f"importer:default/{importer}", now)


def _make_result(
    record: ImportPartRecord,
    name: str,
    wanted: MergedPart,
    outcome: PushResult | None,
    conflicts: Sequence[ReadingProblem],
) -> PartResult:
    undecided = wanted.undecided - {*record.held}
    if outcome is None:
        unchanged = {"added": 0, "updated": 0, "removed": 0, "unchanged": len(wanted.wanted)}
        return PartResult(record, name, unchanged, [], conflicts, undecided)
    plan = outcome.plan
    given = record, name, plan.changes, plan.difference(), conflicts, undecided
    return PartResult(*given, moves=wanted.moves)


async def apply_removals(
    target: ImportTarget, importer: str, part: str, actor: Actor, seen: str | None = None
) -> ImportPartRecord:
    """Apply the held removals, and trust the reading that did not find these entities.

    `seen` is the tag of the part whose removals were shown. Raises NotFoundError if nothing is
    held, PreconditionFailedError if there was another reading or the set has changed meanwhile.
    """
    record = await _require_held(target, importer, part, seen)
    name, going = name_set(importer, part), set(record.held)
    stored = await get_stored_part(target, name)
    wanted = [one.prepared for one in stored.members if one.prepared.ref not in going]
    decided = record._replace(
        state="complete",
        complete_at=record.read_at,
        items=len(wanted),
        held=(),
        reason="",
        rights=record.seen_rights,
    )
    await stored_sets.replace_set(
        target.database,
        name,
        wanted,
        actor,
        Guards(if_match=str(stored.revision)),
        kept=target.kept,
        write=target.saving(decided, record),
    )
    return decided


async def discard_removals(
    target: ImportTarget, importer: str, part: str, seen: str | None = None
) -> ImportPartRecord:
    """Keep the held entities until found again and missing once more.

    `seen` is as for `apply_removals`. Raises NotFoundError if nothing is held,
    PreconditionFailedError if there was another reading.
    """
    record = await _require_held(target, importer, part, seen)
    spared = sorted({*record.spared, *record.held})
    decided = record._replace(
        state="complete", held=(), reason="", spared=spared, rights=record.seen_rights
    )
    await target.saving(decided, record)(lambda transaction: None)
    return decided


async def _require_held(
    target: ImportTarget, importer: str, part: str, seen: str | None
) -> ImportPartRecord:
    record = await records.get_part_record(target.database, importer, part)
    if record is not None and seen not in (None, record.tag):
        raise PreconditionFailedError(_READ_AGAIN.format(name=name_set(importer, part)))
    if record is None or not record.held:
        raise NotFoundError(_NOTHING_HELD.format(name=name_set(importer, part)))
    return record
