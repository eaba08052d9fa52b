"""Places that an importer reads: the namespace of each, which stays, and unique names in it."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import msgspec

from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.importers.code_host.repository import HostedRepository, Place
from factbook.importers.names import lasting_names, names_kept
from factbook.importers.snapshot import NAMESPACES
from factbook.integrations.integration import store_entry, stored_entry
from factbook.outbound import Memory

_NO_NAME: Final = re.compile(r"[^a-z0-9]+")


class _KeptPlaces(msgspec.Struct, array_like=True):
    """Namespaces of what is made in a place, and of its people, by its login in lower case."""

    namespaces: dict[str, tuple[str, str]]


class _KeptMembers(msgspec.Struct, array_like=True):
    """Logins of the places that somebody is in, by number, of everybody who is in several."""

    places: dict[int, set[str]]


async def known_places(
    memory: Memory, host: str, logins: Iterable[str], namespace: str
) -> list[Place]:
    """The places of an importer, those that it has known for longest first.

    The first one is in the namespace `default`, and each further one in a namespace of its name.
    People may be in several places, and are all in the namespace of the first one. A place stays
    where it is, unless the settings name a `namespace`.
    """
    stored = await stored_entry(memory, _key(host), _KeptPlaces)
    known = dict(stored.namespaces) if stored else await _known_before(memory)
    wanted: dict[str, str] = {}
    for login in logins:
        wanted.setdefault(login.lower(), login)
    for login in wanted:
        people = next((found for _, found in known.values()), DEFAULT_NAMESPACE)
        if namespace:
            known[login] = namespace, namespace
        elif login not in known:
            known[login] = (_namespace_of(login) if known else DEFAULT_NAMESPACE), people
    if stored is None or known != stored.namespaces:
        await store_entry(memory, _key(host), _KeptPlaces(known))
    return [Place(host, wanted[login], *found) for login, found in known.items() if login in wanted]


async def _known_before(memory: Memory) -> dict[str, tuple[str, str]]:
    """The same of places that were imported before it was remembered.

    One alone was in `default`, and each of several in a namespace of its name.
    """
    stored = await memory.get(NAMESPACES)
    parts = msgspec.json.decode(stored, type=dict[str, list[str]]) if stored else {}
    found: dict[str, set[str]] = defaultdict(set)
    for part, namespaces in parts.items():
        found[part.rpartition(".")[0].replace(":", "/")].update(namespaces)
    known = {}
    for login, seen in found.items():
        own = _namespace_of(login)
        made = own if len(found) > 1 and own in seen else DEFAULT_NAMESPACE
        known[login] = made, made
    return known


async def with_groups(
    memory: Memory,
    place: Place,
    wanted: Mapping[str, str],
    numbers: Mapping[str, int],
    *,
    complete: bool,
) -> Place:
    """The place with a unique name for each group, by what the host calls it in lower case."""
    return place._replace(
        groups=await _unique(memory, place, "groups", wanted, numbers, complete=complete)
    )


async def with_known_groups(memory: Memory, place: Place) -> Place:
    """The place with the names that its groups had at the last reading of everything."""
    return place._replace(groups=await names_kept(memory, _names_key("groups", place)))


async def named(
    memory: Memory, place: Place, listed: Iterable[HostedRepository], *, complete: bool
) -> list[HostedRepository]:
    """The repositories, each with a unique name for a component that is made of it."""
    every = {one.slug.lower(): one for one in listed}
    wanted = {slug: one.name for slug, one in every.items()}
    numbers = {slug: one.number for slug, one in every.items()}
    names = await _unique(memory, place, "repositories", wanted, numbers, complete=complete)
    return [replace(one, name=names[slug]) for slug, one in every.items()]


async def _unique(
    memory: Memory,
    place: Place,
    kind: str,
    wanted: Mapping[str, str],
    numbers: Mapping[str, int],
    *,
    complete: bool,
) -> dict[str, str]:
    """Names that no other place in the namespace uses for this kind of thing.

    Of things that want the same name, the one with the lowest number gets it.
    """
    stored = await stored_entry(memory, _key(place.host), _KeptPlaces)
    taken: list[str] = []
    for login, (namespace, people) in (stored.namespaces if stored else {}).items():
        if login != place.login.lower() and namespace == place.namespace:
            other = Place(place.host, login, namespace, people)
            taken += (await names_kept(memory, _names_key(kind, other))).values()
    key = _names_key(kind, place)
    ordered = {id_: wanted[id_] for id_ in sorted(wanted, key=lambda id_: numbers[id_])}
    return await lasting_names(memory, key, ordered, numbers, complete=complete, taken=taken)


class Memberships:
    """Groups of the people of all places; somebody in several is of the first one alone."""

    def __init__(self, memory: Memory, host: str) -> None:
        self._memory = memory
        self._name = f"members of several:{host}"
        self._groups: dict[int, set[str]] = defaultdict(set)
        self._places: dict[int, set[str]] = defaultdict(set)
        self._certain: set[str] = set()
        self._whole: set[str] = set()
        self._before: Mapping[int, set[str]] = {}
        self._of_first: set[int] = set()

    def add(
        self, place: Place, groups: Mapping[int, Iterable[str]], *, certain: bool, complete: bool
    ) -> None:
        """Add references of the groups of each member of a place, by the member's number.

        They are `certain` if all groups were read with their members, and `complete` if there are
        no other members.
        """
        for number, refs in groups.items():
            self._groups[number].update(refs)
            self._places[number].add(place.login.lower())
        if certain:
            self._certain.add(place.login.lower())
        if complete:
            self._whole.add(place.login.lower())

    async def compare(self) -> None:
        """Look up who was in several places before, and remember who is."""
        stored = await stored_entry(self._memory, self._name, _KeptMembers)
        self._before = stored.places if stored else {}
        found: dict[int, set[str]] = {}
        for number in self._places.keys() | self._before.keys():
            places = self._places.get(number, set()) | (
                self._before.get(number, set()) - self._whole
            )
            if len(places) > 1:
                found[number] = places
        if found != self._before:
            await store_entry(self._memory, self._name, _KeptMembers(found))

    def first(self, number: int) -> bool:
        """True for the first place that asks about somebody."""
        is_first = number not in self._of_first
        self._of_first.add(number)
        return is_first

    def of(self, number: int) -> Sequence[str]:
        """References of the groups that somebody is a member of, in order."""
        return sorted(self._groups[number])

    def uncertain(self, place: Place, number: int) -> bool:
        """True if somebody may be in further groups, of a place that was not read whole."""
        read = self._whole | (self._places[number] & self._certain)
        is_certain = place.login.lower() in self._certain
        return not is_certain or bool(self._before.get(number, set()) - read)


def _namespace_of(login: str) -> str:
    """The login as a namespace."""
    return _NO_NAME.sub("-", login.lower()).strip("-")[:63].rstrip("-") or DEFAULT_NAMESPACE


def _key(host: str) -> str:
    return f"places:{host}"


def _names_key(kind: str, place: Place) -> str:
    return f"names of {kind}:{place.namespace}:{place.origin.lower()}"
