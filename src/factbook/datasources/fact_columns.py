"""Parsing of requests for a fact across the catalog: fact, part, filters and cursors."""

import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from factbook import clock
from factbook.catalog import ref as refs
from factbook.catalog.store import related_entities
from factbook.catalog.store.related_entities import CatalogPart
from factbook.datasources.define import find_source
from factbook.datasources.registry import Registry
from factbook.errors import InputError, NotFoundError, one_of, suggestion
from factbook.facts import freshness
from factbook.facts.across import ValueFilter, ValuePlace, ValueSort
from factbook.facts.distribution import NUMBER_TYPES, FactColumn, sql_member_name
from factbook.facts.schema import REASONS, TYPES, Fact, moment_or_text
from factbook.integrations import catalog
from factbook.storage import Database

# As an owner or system: entities without one.
NO_VALUE: Final = "-"
VALUE_SORTS: Final[tuple[ValueSort, ...]] = ("entity", "value", "-value")
_BOOLEAN_TEXTS: Final = {"true": True, "false": False}
_LONGEST_CURSOR: Final = 8_000


async def find_fact_column(
    database: Database, registry: Registry, source_id: str, name: str
) -> FactColumn:
    """The fact of a source with this name; raises NotFoundError."""
    source = await find_source(registry, source_id)
    fact = next((one for one in source.schema if one.name == name), None)
    if fact is None:
        near = suggestion(name, (one.name for one in source.schema))
        raise NotFoundError(f'The data source {source.id} has no fact "{name}".{near}')
    column = FactColumn(
        source,
        fact,
        catalog.find_compliance_bit(source.id, name),
        freshness.freshness_of(database).stale_before(source.id),
        freshness.freshness_of(database).kept_before(source.id),
    )
    sql_member_name(fact)
    return column


async def find_part(
    database: Database,
    *,
    kind: str | None = None,
    namespace: str | None = None,
    owner: str | None = None,
    system: str | None = None,
    type: str | None = None,
    lifecycle: str | None = None,
) -> CatalogPart:
    """The requested part of the catalog; a group includes the entities of its subgroups.

    Raises InputError for an invalid reference.
    """
    if any("\0" in text for text in (kind, namespace, type, lifecycle) if text):
        raise InputError("No entity has the character NUL.")
    found = CatalogPart(
        kind=kind and kind.strip().lower(),
        namespace=namespace and namespace.strip().lower(),
        type=type,
        lifecycle=lifecycle,
    )
    if owner is not None:
        found = found._replace(owners=await _part_owners(database, owner))
    if system is not None:
        ref = "" if system == NO_VALUE else str(refs.parse_ref(system, kind="system"))
        found = found._replace(system=ref)
    return found


async def _part_owners(database: Database, owner: str) -> list[str]:
    if owner == NO_VALUE:
        return []
    ref = str(refs.parse_ref(owner, kind="group"))
    return (
        await related_entities.list_groups_below(database, ref)
        if ref.startswith("group:")
        else [ref]
    )


def read_value_filter(fact: Fact, given: Mapping[str, str | None]) -> ValueFilter:
    """The filter of `known`, `reason`, `value`, `min` and `below`; raises InputError."""
    known, reason, value = given.get("known"), given.get("reason"), given.get("value")
    if value == "" and fact.type not in {"string", "set"}:
        value = None
    if known is not None and known not in _BOOLEAN_TEXTS:
        raise InputError(f'known has to be true or false, not "{known}".')
    if reason is not None and reason not in REASONS:
        raise InputError(f'reason {one_of(reason, REASONS)}, not "{reason}".')
    return ValueFilter(
        known=None if known is None else _BOOLEAN_TEXTS[known],
        reason=reason,
        value=None if value is None else _filter_value(fact, value),
        least=_filter_bound(fact, "min", given.get("min")),
        below=_filter_bound(fact, "below", given.get("below")),
    )


def check_sort(column: FactColumn, given: str | None) -> ValueSort:
    """The order of a page, by default by entity; raises InputError."""
    found = next((one for one in VALUE_SORTS if one == given), None)
    if given is not None and found is None:
        raise InputError(f'sort {one_of(given, VALUE_SORTS)}, not "{given}".')
    if found not in {None, "entity"} and not column.is_ordered:
        raise InputError(f"Values of the type {column.fact.type} have no order: sort by entity.")
    return found or "entity"


def write_value_cursor(place: ValuePlace | None) -> str | None:
    """The cursor for a place; None without a place."""
    return None if place is None else urlsafe_b64encode(msgspec.json.encode(place)).decode()


def place_of_cursor(fact: Fact, text: str | None) -> ValuePlace | None:
    """The place of a cursor from `write_value_cursor`; raises InputError."""
    if not text:
        return None
    try:
        if len(text) > _LONGEST_CURSOR:
            raise ValueError
        found = msgspec.json.decode(
            urlsafe_b64decode(text.encode("ascii")), type=tuple[bool, Any, str]
        )
    except (ValueError, msgspec.MsgspecError, RecursionError):
        raise InputError("cursor has to be the nextCursor of a page.") from None
    is_known, value, ref = found
    wanted = (int, float) if fact.type in {*NUMBER_TYPES, "datetime"} else str
    is_fitting = isinstance(value, wanted) and not isinstance(value, bool)
    if "\0" in f"{value}{ref}" or (is_known and not is_fitting):
        raise InputError("cursor has to be the nextCursor of a page of this fact.")
    return is_known, value, ref


def _filter_value(fact: Fact, text: str) -> Any:
    if "\0" in text:
        raise InputError("value has the character NUL, which no fact has.")
    match fact.type:
        case "boolean":
            if text not in _BOOLEAN_TEXTS:
                raise InputError(f'value has to be true or false, not "{text}".')
            return _BOOLEAN_TEXTS[text]
        case "integer" | "float":
            return _filter_number("value", text)
        case "string" | "set":
            return text
    raise InputError(f"Facts of the type {fact.type} cannot be asked for by value.")


def _filter_bound(fact: Fact, name: str, text: str | None) -> float | None:
    if text is None:
        return None
    if fact.type in NUMBER_TYPES:
        return _filter_number(name, text)
    if fact.type != "datetime":
        raise InputError(f"{name} is of numbers and of dates, not of the type {fact.type}.")
    # An unencoded + arrives as a space.
    moment = clock.milliseconds(moment_or_text(text.replace(" ", "+")))
    if moment is None:
        raise InputError(f'{name} has to be {TYPES["datetime"].words}, from 1970 on, not "{text}".')
    return moment


def _filter_number(name: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise InputError(f'{name} has to be a number, not "{text}".')
    return found
