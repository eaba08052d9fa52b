"""Decisions about removals that an importer holds: to apply them, or to discard them."""

from typing import Final

from factbook.catalog.store import stored_sets
from factbook.catalog.store.apply import Actor
from factbook.catalog.store.diff import Guards
from factbook.errors import NotFoundError, PreconditionFailedError
from factbook.importers import part_store
from factbook.importers.part_store import ImportPartRecord
from factbook.importers.snapshot import set_name
from factbook.importers.writer import ImportTarget, stored_part

_NOTHING: Final = "No removal of {name} waits for a decision."
_READ_AGAIN: Final = "{name} was read again since it was shown; nothing was written."


async def apply(
    target: ImportTarget, importer: str, part: str, actor: Actor, seen: str | None = None
) -> ImportPartRecord:
    """Remove what is held, and believe the reading that did not find it.

    `seen` is the tag of the part whose removals were shown. Raises NotFoundError if nothing is
    held, PreconditionFailedError if there was another reading or the set has changed meanwhile.
    """
    record = await _held(target, importer, part, seen)
    name, going = set_name(importer, part), set(record.held)
    stored = await stored_part(target, name)
    wanted = [one.prepared for one in stored.members if one.prepared.ref not in going]
    decided = record._replace(
        state="complete",
        complete_at=record.read_at,
        items=len(wanted),
        held=(),
        reason="",
        rights=record.seen_rights,
    )
    await stored_sets.replace(
        target.database,
        name,
        wanted,
        actor,
        Guards(if_match=str(stored.revision)),
        kept=target.kept,
        write=target.saving(decided, record),
    )
    return decided


async def discard(
    target: ImportTarget, importer: str, part: str, seen: str | None = None
) -> ImportPartRecord:
    """Keep what is held until it is found again and missing once more.

    `seen` is as for `apply`. Raises NotFoundError if nothing is held, PreconditionFailedError if
    there was another reading.
    """
    record = await _held(target, importer, part, seen)
    spared = sorted({*record.spared, *record.held})
    decided = record._replace(
        state="complete", held=(), reason="", spared=spared, rights=record.seen_rights
    )
    await target.saving(decided, record)(lambda transaction: None)
    return decided


async def _held(
    target: ImportTarget, importer: str, part: str, seen: str | None
) -> ImportPartRecord:
    record = await part_store.part_record(target.database, importer, part)
    if record is not None and seen not in (None, record.tag):
        raise PreconditionFailedError(_READ_AGAIN.format(name=set_name(importer, part)))
    if record is None or not record.held:
        raise NotFoundError(_NOTHING.format(name=set_name(importer, part)))
    return record
