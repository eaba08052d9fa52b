"""Names of entities, made of names that other systems allow."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from factbook import invisible
from factbook.catalog.validation import DOT_SEGMENTS, normal_name
from factbook.integrations.integration import store_entry, stored_entry
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


async def lasting_names(
    memory: Memory,
    key: str,
    wanted: Mapping[str, str],
    suffixes: Mapping[str, object],
    *,
    complete: bool,
    taken: Collection[str] = (),
) -> dict[str, str]:
    """A name for each id that nothing else has: the one it had last time, or the one it wants.

    Where something else has that name, the id's suffix follows it. `taken` are names of others. The
    names of ids that an incomplete reading didn't find are kept.
    """
    kept = await names_kept(memory, key)
    apart = {id_: f"{name[:180]}-{suffixes[id_]}" for id_, name in wanted.items()}
    names = {} if complete else {id_: name for id_, name in kept.items() if id_ not in wanted}
    for id_, name in wanted.items():
        before = kept.get(id_, "").casefold()
        if before == name.casefold():
            names[id_] = name
        elif f"{before}-".startswith(f"{apart[id_]}-".casefold()):
            names[id_] = kept[id_]
    used = {name.casefold() for name in (*taken, *names.values())}
    for id_, name in wanted.items():
        if id_ in names:
            continue
        found, times = name, 1
        while found.casefold() in used:
            found = apart[id_] if times == 1 else f"{apart[id_]}-{times}"
            times += 1
        names[id_] = found
        used.add(found.casefold())
    if names != kept:
        await keep_names(memory, key, names)
    return names


async def keep_names(memory: Memory, key: str, names: Mapping[str, str]) -> None:
    """Keep the names by id for the next reading."""
    await store_entry(memory, key, _NamesById(dict(names)))


class _NamesById(msgspec.Struct, array_like=True):
    """Names by id."""

    names: dict[str, str]


async def names_kept(memory: Memory, key: str) -> dict[str, str]:
    """The names by id that the last reading gave."""
    kept = await stored_entry(memory, key, _NamesById)
    return kept.names if kept else {}


def unique_names(given: Mapping[str, str]) -> dict[str, str]:
    """A name for each id, which is the name that it is given wherever that can be one.

    Names that differ only in case would be one reference: each of them gets its id behind it.
    """
    names = {id_: entity_name(name) or entity_name(id_) for id_, name in given.items()}
    # A name with an id behind it may be that which something else was given.
    while (count := Counter(name.casefold() for name in names.values())).total() > len(count):
        names = {
            id_: name if count[name.casefold()] == 1 else entity_name(f"{name[:180]}-{id_}")
            for id_, name in names.items()
        }
    return names


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
