"""Filters on the values of a fact, and places in their order, as callers write them."""

import math
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from factbook import clock
from factbook.errors import InputError, one_of
from factbook.facts.across import NUMBER_TYPES, FactColumn
from factbook.facts.entity_values import ValueFilter, ValuePlace, ValueSort
from factbook.facts.schema import REASONS, TYPES, Fact, moment_or_text

SORTS: Final[tuple[ValueSort, ...]] = ("entity", "value", "-value")
_BOOLEANS: Final = {"true": True, "false": False}
_LONGEST_CURSOR: Final = 8_000


def read(fact: Fact, given: Mapping[str, str | None]) -> ValueFilter:
    """The filter of `known`, `reason`, `value`, `min` and `below`; raises InputError."""
    known, reason, value = given.get("known"), given.get("reason"), given.get("value")
    if value == "" and fact.type not in {"string", "set"}:
        value = None
    if known is not None and known not in _BOOLEANS:
        raise InputError(f'known has to be true or false, not "{known}".')
    if reason is not None and reason not in REASONS:
        raise InputError(f'reason {one_of(reason, REASONS)}, not "{reason}".')
    return ValueFilter(
        known=None if known is None else _BOOLEANS[known],
        reason=reason,
        value=None if value is None else _value(fact, value),
        least=_bound(fact, "min", given.get("min")),
        below=_bound(fact, "below", given.get("below")),
    )


def sort(column: FactColumn, given: str | None) -> ValueSort:
    """The order of a page, by entity unless another one is given; raises InputError."""
    found = next((one for one in SORTS if one == given), None)
    if given is not None and found is None:
        raise InputError(f'sort {one_of(given, SORTS)}, not "{given}".')
    if found not in {None, "entity"} and not column.is_ordered:
        raise InputError(f"Values of the type {column.fact.type} have no order: sort by entity.")
    return found or "entity"


def cursor(place: ValuePlace | None) -> str | None:
    """The text for a place, None for none."""
    return None if place is None else urlsafe_b64encode(msgspec.json.encode(place)).decode()


def place(fact: Fact, text: str | None) -> ValuePlace | None:
    """The place of a text that `cursor` gave; raises InputError."""
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


def _value(fact: Fact, text: str) -> Any:
    if "\0" in text:
        raise InputError("value has the character NUL, which no fact has.")
    match fact.type:
        case "boolean":
            if text not in _BOOLEANS:
                raise InputError(f'value has to be true or false, not "{text}".')
            return _BOOLEANS[text]
        case "integer" | "float":
            return _number("value", text)
        case "string" | "set":
            return text
    raise InputError(f"Facts of the type {fact.type} cannot be asked for by value.")


def _bound(fact: Fact, name: str, text: str | None) -> float | None:
    if text is None:
        return None
    if fact.type in NUMBER_TYPES:
        return _number(name, text)
    if fact.type != "datetime":
        raise InputError(f"{name} is of numbers and of dates, not of the type {fact.type}.")
    # A + that was not encoded comes as a blank.
    moment = clock.milliseconds(moment_or_text(text.replace(" ", "+")))
    if moment is None:
        raise InputError(f'{name} has to be {TYPES["datetime"].words}, from 1970 on, not "{text}".')
    return moment


def _number(name: str, text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise InputError(f'{name} has to be a number, not "{text}".')
    return found
