"""Conventions that importers share: names of entities, and accounts that are people.

A person is somebody who can sign in. Service accounts, accounts that are disabled, and those of
people who left are in no part, in no group, and own nothing.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Final, Protocol, TypeVar

import msgspec

from factbook import invisible
from factbook.catalog.validation import DOT_SEGMENTS, normal_name
from factbook.integrations.integration import get_stored_entry, store_entry
from factbook.outbound.cache import Memory

_LONGEST_NAME: Final = 253
_RUNS: Final = re.compile(r"-{2,}")


async def remember_names(
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


async def assign_lasting_names(
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
    kept = await get_kept_names(memory, key)
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


async def get_kept_names(memory: Memory, key: str) -> dict[str, str]:
    """The names by id that the last reading gave."""
    kept = await get_stored_entry(memory, key, _NamesById)
    return kept.names if kept else {}


def make_unique_names(given: Mapping[str, str]) -> dict[str, str]:
    """A name for each id, which is the name that it is given wherever that can be one.

    Names that differ only in case would be one reference: each of them gets its id behind it.
    """
    names = {id_: make_entity_name(name) or make_entity_name(id_) for id_, name in given.items()}
    # A name with an id behind it may be that which something else was given.
    while (count := Counter(name.casefold() for name in names.values())).total() > len(count):
        names = {
            id_: name if count[name.casefold()] == 1 else make_entity_name(f"{name[:180]}-{id_}")
            for id_, name in names.items()
        }
    return names


def make_entity_name(text: str) -> str:
    """The text as a name: with a hyphen for what no name may hold, cut to 253 characters.

    Empty if nothing of the text can be a name.
    """
    allowed = (c if c.isprintable() and c not in "/:" else "-" for c in invisible.without(text))
    changed = "".join(allowed)
    if changed != text:
        changed = _RUNS.sub("-", changed).strip("- ")
    name = normal_name(changed[:_LONGEST_NAME])[:_LONGEST_NAME].strip()
    return "" if name in DOT_SEGMENTS else name


class HostAccount(Protocol):
    """Account as a system describes it."""

    @property
    def is_service(self) -> bool:
        """True for the account of a program."""

    @property
    def is_disabled(self) -> bool:
        """True for an account that nobody can sign in with."""


Account = TypeVar("Account", bound=HostAccount)


def is_person_account(account: HostAccount) -> bool:
    """True for the account of a person who can sign in."""
    return not (account.is_service or account.is_disabled)


def select_people(accounts: Iterable[Account], left_out: Counter[str]) -> list[Account]:
    """The accounts of people; the others are counted in `left_out`."""
    found = []
    for one in accounts:
        if is_person_account(one):
            found.append(one)
        else:
            left_out["service accounts" if one.is_service else "disabled accounts"] += 1
    return found
