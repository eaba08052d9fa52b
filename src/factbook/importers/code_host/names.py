"""Names that repositories had before, so that what came from them is known by their present one."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from factbook.importers.code_host.repository import HostedRepository, Place
from factbook.integrations.integration import store_entry, stored_entry
from factbook.outbound import Memory

_MOST: Final = 10


class _KeptNames(msgspec.Struct, array_like=True):
    """Names of each repository by its number, the latest last."""

    slugs: dict[int, list[str]]


async def former_names(
    memory: Memory, place: Place, listed: Iterable[HostedRepository]
) -> Mapping[str, frozenset[str]]:
    """The former origins of each repository that had another name; keeps the present names.

    Those of a repository that is not listed are kept too: it may only be hidden for now.
    """
    key = _key(place)
    stored = await stored_entry(memory, key, _KeptNames)
    slugs = dict(stored.slugs) if stored else {}
    former: dict[str, frozenset[str]] = {}
    for one in listed:
        others = [slug for slug in slugs.get(one.number, ()) if slug != one.slug]
        slugs[one.number] = [*others, one.slug][-_MOST:]
        if others:
            former[place.origin_of(one.slug)] = frozenset(map(place.origin_of, others))
    if stored is None or slugs != stored.slugs:
        await store_entry(memory, key, _KeptNames(slugs))
    return former


async def present_origins(memory: Memory, place: Place) -> frozenset[str]:
    """The origins that repositories have by their latest names."""
    stored = await stored_entry(memory, _key(place), _KeptNames)
    slugs = stored.slugs.values() if stored else ()
    return frozenset(place.origin_of(names[-1]) for names in slugs if names)


def _key(place: Place) -> str:
    return f"names:{place.origin}"
