"""Names of entities, made of names that other systems allow."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from factbook import invisible
from factbook.catalog.validation import DOT_SEGMENTS, normal_name
from factbook.outbound import Memory

_LONGEST: Final = 253
_RUNS: Final = re.compile(r"-{2,}")


async def known_names(
    memory: Memory, key: str, given: Mapping[str, str], *, complete: bool
) -> dict[str, str]:
    """The names by id that a reading gives, which is remembered for the next one.

    An incomplete reading has those of earlier ones, too: what is unique depends on all of them.
    """
    before: dict[str, str] = {}
    if not complete and (kept := await memory.get(key)):
        before = msgspec.json.decode(kept, type=dict[str, str])
    names = {**before, **given}
    await memory.put(key, msgspec.json.encode(names))
    return names


def unique_names(given: Mapping[str, str]) -> dict[str, str]:
    """A name for each id, which is the name that it is given wherever that can be one.

    Names that differ only in case would be one reference: each of them gets its id behind it.
    """
    names = {id_: entity_name(name) or entity_name(id_) for id_, name in given.items()}
    count = Counter(name.casefold() for name in names.values())
    return {
        id_: name if count[name.casefold()] == 1 else entity_name(f"{name[:180]}-{id_}")
        for id_, name in names.items()
    }


def entity_name(text: str) -> str:
    """The text as a name: with a hyphen for what no name may hold, cut to 253 characters.

    Empty if nothing of the text can be a name.
    """
    allowed = (c if c.isprintable() and c not in "/:" else "-" for c in invisible.without(text))
    changed = "".join(allowed)
    if changed != text:
        changed = _RUNS.sub("-", changed).strip("- ")
    name = normal_name(changed[:_LONGEST])[:_LONGEST].strip()
    return "" if name in DOT_SEGMENTS else name
