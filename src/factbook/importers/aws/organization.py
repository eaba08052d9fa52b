"""Reading of an organization of AWS: its accounts, their tags and organizational units."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.errors import InputError
from factbook.importers.aws import accounts
from factbook.importers.aws.accounts import AwsAccount, AwsTag, AwsUnit
from factbook.importers.aws.api import AwsListing, OrganizationsApi
from factbook.importers.aws.options import AwsImportOptions
from factbook.importers.names import known_names, unique_names
from factbook.importers.snapshot import (
    GENERATED,
    ImportedItem,
    ReadingProblem,
    Snapshot,
    SnapshotPart,
)
from factbook.outbound import Memory
from factbook.outbound.outcomes import REPEATED, Missing, Outcome

ACCOUNTS: Final = "accounts"
UNITS: Final = "units"
_ORIGIN: Final = "amazonaws.com"
_NAMES: Final = "names of accounts"
_UNIT_NAMES: Final = "names of units"

# A call is signed before it waits for its turn, and a signature is valid for five minutes.
_AT_ONCE: Final = 4

# Without rights there is no use in asking for each of a thousand accounts.
_FUTILE: Final = frozenset({Outcome.DENIED, Outcome.REFUSED})

Show = Callable[[str], None]


@dataclass
class UnitTree:
    """Organizational units by id, each with the names from the root to it.

    `missing` is the reason if there are units that were not read.
    """

    units: dict[str, AwsUnit] = field(default_factory=dict)
    paths: dict[str, list[str]] = field(default_factory=dict)
    missing: Missing | None = None
    parents: set[str] = field(default_factory=set)

    @property
    def rights(self) -> frozenset[str]:
        """The units with others below them: a list that is suddenly empty is not believed."""
        return frozenset(f"units below {parent}" for parent in self.parents)


def unread(missing: Missing, options: AwsImportOptions) -> Snapshot:
    """The snapshot of an organization that cannot be asked."""
    problem = ReadingProblem(_ORIGIN, missing.reason)
    keys = [ACCOUNTS, UNITS] if options.units else [ACCOUNTS]
    return Snapshot(tuple(SnapshotPart(key, False, problems=(problem,)) for key in keys))


async def read(
    api: OrganizationsApi, options: AwsImportOptions, memory: Memory, show: Show
) -> Snapshot:
    """A snapshot of the organization: parts for its accounts and, if wanted, its units."""
    listed: AwsListing[AwsAccount] = await api.listing(
        "ListAccounts", "Accounts", AwsAccount, lambda count: show(f"Read {count:,} accounts")
    )
    every = {account.id: account for account in listed.items}
    wanted = [one for one in every.values() if options.closed or one.state not in accounts.CLOSED]
    left_out = Counter({"suspended and closed accounts": len(every) - len(wanted)})
    show("Reading the organizational units" if options.units else "Reading the tags")
    tree = await _read_units(api) if options.units else None
    tags = await _tags(api, wanted, options)
    complete = listed.missing is None
    given = {id_: account.name for id_, account in every.items()}
    names = unique_names(await known_names(memory, _NAMES, given, complete=complete))
    making = _OrganizationParts(options, tree, await _systems(tree, memory), tags)
    parts = [making.accounts(wanted, names, listed.missing)]
    if tree is not None:
        parts.append(making.units(tree))
    return Snapshot(tuple(parts), +left_out)


async def _tags(
    api: OrganizationsApi, wanted: Iterable[AwsAccount], options: AwsImportOptions
) -> dict[str, list[AwsTag] | Missing]:
    """The tags of each account, or the reason that they are not known."""
    waiting = [account.id for account in wanted] if options.owner_tags else []
    found: dict[str, list[AwsTag] | Missing] = {}
    turns = asyncio.Semaphore(_AT_ONCE)

    async def one(id_: str) -> None:
        async with turns:
            tags = await api.listing("ListTagsForResource", "Tags", AwsTag, ResourceId=id_)
        found[id_] = tags.missing or tags.items

    if waiting:
        await one(first := waiting[0])
        told = found[first]
        if isinstance(told, Missing) and told.outcome in _FUTILE:
            return dict.fromkeys(waiting, told)
        async with asyncio.TaskGroup() as group:
            for id_ in waiting[1:]:
                group.create_task(one(id_))
    return found


async def _systems(tree: UnitTree | None, memory: Memory) -> dict[str, str]:
    """The names of the systems by the id of the unit."""
    if tree is None:
        return {}
    given = {unit.id: unit.name for unit in tree.units.values()}
    complete = tree.missing is None
    return unique_names(await known_names(memory, _UNIT_NAMES, given, complete=complete))


class _OrganizationParts:
    """Maker of the parts of one organization."""

    def __init__(
        self,
        options: AwsImportOptions,
        tree: UnitTree | None,
        systems: Mapping[str, str],
        tags: Mapping[str, list[AwsTag] | Missing],
    ) -> None:
        self._options = options
        self._tree = tree
        self._systems = systems
        self._tags = tags
        self._problems: list[ReadingProblem] = []

    def accounts(
        self, wanted: Sequence[AwsAccount], names: Mapping[str, str], missing: Missing | None
    ) -> SnapshotPart:
        """The part of the accounts.

        Names are unique among all of them, so that a closed one does not rename another.
        """
        if missing:
            self._problems.append(ReadingProblem(_ORIGIN, f"accounts: {missing.reason}"))
        items = [self._account(account, names[account.id]) for account in wanted]
        unknown = [one for one in self._tags.values() if isinstance(one, Missing)]
        reasons = dict.fromkeys(one.reason for one in unknown)
        self._problems += [ReadingProblem(_ORIGIN, f"tags: {reason}") for reason in reasons]
        none = bool(unknown) and len(unknown) == len(self._tags)
        return SnapshotPart(
            ACCOUNTS,
            missing is None,
            tuple(items),
            tuple(self._problems),
            rights=frozenset(_rights(wanted)),
            failed=none or any(one.passing for one in unknown),
        )

    def units(self, tree: UnitTree) -> SnapshotPart:
        """The part of the organizational units."""
        place = self._options.namespace
        items = [
            _item(
                _placed(accounts.system(unit, self._systems[id_], tree.paths[id_]), place),
                id_,
                unit,
            )
            for id_, unit in tree.units.items()
        ]
        missing = tree.missing
        problems = [ReadingProblem(_ORIGIN, f"units: {missing.reason}")] if missing else []
        return SnapshotPart(
            UNITS, missing is None, tuple(items), tuple(problems), rights=tree.rights
        )

    def _account(self, account: AwsAccount, name: str) -> ImportedItem:
        """The item of an account; without its tags or its unit it changes nothing."""
        tags, owner, uncertain = self._tags.get(account.id, []), None, False
        known: list[AwsTag] = []
        if isinstance(tags, Missing):
            uncertain = True
        else:
            known = tags
            try:
                owner = accounts.owner_of(tags, self._options.owner_tags)
            except InputError:
                text = "the tag that names its owner is no reference, such as group:payments"
                self._problems.append(ReadingProblem(_place(account.id), text))
        system = None
        if self._tree is not None and account.units:
            unit = account.units[-1]
            name_of_unit = self._systems.get(unit) if unit in self._tree.units else None
            system = name_of_unit and f"system:{self._options.namespace}/{name_of_unit}"
            # A unit that is not in the tree was made, or could not be read, meanwhile.
            uncertain |= system is None and unit.startswith("ou-")
        entity = _placed(accounts.resource(account, name, owner, system), self._options.namespace)
        raw = msgspec.to_builtins(account) | {"Tags": {tag.key: tag.value for tag in known}}
        return _item(entity, account.id, raw, tentative=uncertain)


def _placed(entity: accounts.Entity, namespace: str) -> accounts.Entity:
    if namespace != DEFAULT_NAMESPACE:
        entity["metadata"]["namespace"] = namespace
    return entity


def _item(entity: accounts.Entity, id_: str, raw: Any, *, tentative: bool = False) -> ImportedItem:
    place = _place(id_)
    return ImportedItem(entity, place, place, tentative=tentative, marks=GENERATED, raw=raw)


def _place(id_: str) -> str:
    kind = "organizational-unit" if id_.startswith("ou-") else "account"
    return f"{_ORIGIN}/{kind}/{id_}"


def _rights(listed: Iterable[AwsAccount]) -> Iterable[str]:
    return (f"organization {one.organization}" for one in listed if one.organization)


async def _read_units(api: OrganizationsApi) -> UnitTree:
    """Every organizational unit."""
    tree = UnitTree()
    roots = await api.listing("ListRoots", "Roots", AwsUnit)
    tree.missing = roots.missing
    waiting = [(root.id, [root.name]) for root in roots.items]
    while waiting:
        parent, path = waiting.pop()
        found = await api.listing(
            "ListOrganizationalUnitsForParent", "OrganizationalUnits", AwsUnit, ParentId=parent
        )
        tree.missing = tree.missing or found.missing
        tree.parents |= {parent} if found.items else set()
        for unit in found.items:
            if unit.id in tree.units:
                tree.missing = tree.missing or REPEATED
                continue
            tree.units[unit.id], tree.paths[unit.id] = unit, path
            waiting.append((unit.id, [*path, unit.name]))
    return tree
