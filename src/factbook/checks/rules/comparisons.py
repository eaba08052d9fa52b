"""Tests of one value against what is wanted of it.

Each function takes what is wanted and returns the test. A test raises TypeError for a value of
another kind than it compares, so that a value that cannot be compared never passes nor fails.
"""

from collections.abc import Callable, Sequence
from typing import Any

from factbook.checks.rules import version_order
from factbook.checks.rules.version_order import Version

Test = Callable[[Any], bool]


def caseless(make: Callable[[Any], Test]) -> Callable[[Any], Test]:
    """The same comparison for which letters of either case are equal."""

    def made(wanted: Any) -> Test:
        test = make(_lowered(wanted))
        return lambda value: test(_lowered(value))

    return made


def _lowered(value: Any) -> Any:
    if isinstance(value, list):
        return [_lowered(one) for one in value]
    return value.lower() if isinstance(value, str) else value


def equal(wanted: Any) -> Test:
    kind = _kind(wanted)
    if kind in (list, dict):
        return lambda value: _equal_within(value, wanted)

    def test(value: Any) -> bool:
        return bool(value == wanted) if type(value) is kind else _equal(value, wanted)

    return test


def not_equal(wanted: Any) -> Test:
    return _negated(equal(wanted))


def is_in(wanted: Sequence[Any]) -> Test:
    """Unknown for what is not among the known items where others are null, which could be it."""
    items = frozenset(one for one in _listed(wanted) if one is not None)
    kinds = set(map(_kind, items))
    if bool in kinds:
        raise TypeError
    is_whole = None not in wanted

    def test(value: Any) -> bool:
        if kinds and _kind(value) not in kinds:
            raise TypeError
        if value in items:
            return True
        if is_whole:
            return False
        raise TypeError

    return test


def is_not_in(wanted: Sequence[Any]) -> Test:
    return _negated(is_in(wanted))


def contains(wanted: Any) -> Test:
    def test(value: Any) -> bool:
        if isinstance(value, str):
            return _text(wanted) in value
        if not _is_member(wanted):
            raise TypeError
        members = _members(value)
        return wanted in members or _if_known(value)

    return test


def lacks(wanted: Any) -> Test:
    return _negated(contains(wanted))


def less(wanted: float) -> Test:
    bound = _number(wanted)

    def test(value: Any) -> bool:
        if type(value) is int or type(value) is float:
            return value < bound
        raise TypeError

    return test


def at_most(wanted: float) -> Test:
    bound = _number(wanted)

    def test(value: Any) -> bool:
        if type(value) is int or type(value) is float:
            return value <= bound
        raise TypeError

    return test


def more(wanted: float) -> Test:
    bound = _number(wanted)

    def test(value: Any) -> bool:
        if type(value) is int or type(value) is float:
            return value > bound
        raise TypeError

    return test


def at_least(wanted: float) -> Test:
    bound = _number(wanted)

    def test(value: Any) -> bool:
        if type(value) is int or type(value) is float:
            return value >= bound
        raise TypeError

    return test


def starts(wanted: str) -> Test:
    return lambda value: _text(value).startswith(wanted)


def ends(wanted: str) -> Test:
    return lambda value: _text(value).endswith(wanted)


def any_of(wanted: Sequence[Any]) -> Test:
    items = _members(wanted)

    def test(value: Any) -> bool:
        return not items.isdisjoint(_members(value)) or _if_known([*value, *wanted])

    return test


def all_of(wanted: Sequence[Any]) -> Test:
    items = _members(wanted)

    def test(value: Any) -> bool:
        if items.issubset(_members(value)):
            return not _if_known(wanted)
        return _if_known(value)

    return test


def empty(_: None) -> Test:
    return lambda value: _length(value) == 0


def not_empty(_: None) -> Test:
    return lambda value: _length(value) > 0


def large(wanted: int) -> Test:
    return lambda value: _size(value) >= wanted


def small(wanted: int) -> Test:
    return lambda value: _size(value) <= wanted


def version(wanted: str) -> Test:
    least = _version(wanted)
    return lambda value: _version(value) >= least


def older_version(wanted: str) -> Test:
    return _negated(version(wanted))


def _negated(test: Test) -> Test:
    return lambda value: not test(value)


def _kind(value: Any) -> type:
    """The kind of a JSON value; all numbers are of one, and true is no number."""
    kind = type(value)
    return float if kind is int else kind


def _equal(value: Any, wanted: Any) -> bool:
    if _kind(value) is not _kind(wanted):
        raise TypeError
    return bool(value == wanted)


def _equal_within(value: Any, wanted: Any) -> bool:
    """The equality of lists and objects in JSON, in which true is no number either."""
    if type(value) is not type(wanted):
        raise TypeError
    return _is_same(value, wanted)


def _is_same(one: Any, other: Any) -> bool:
    if _kind(one) is not _kind(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_is_same, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_is_same(one[k], other[k]) for k in one)
    return bool(one == other)


def _number(value: Any) -> float:
    if type(value) is int or type(value) is float:
        return value
    raise TypeError


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    return value


def _listed(value: Any) -> list[Any]:
    if type(value) is not list:
        raise TypeError
    return value


def _is_member(value: Any) -> bool:
    """Return true for what sets hold; true is no number."""
    return type(value) in (str, int, float)


def _members(value: Any) -> frozenset[Any]:
    return frozenset(filter(_is_member, _listed(value)))


def _if_known(items: Sequence[Any]) -> bool:
    """False, as no item is the one; raises TypeError if one of them cannot be compared."""
    if all(map(_is_member, items)):
        return False
    raise TypeError


def _size(value: Any) -> int:
    """The length; raises TypeError for a list of which some items are unknown."""
    if isinstance(value, list) and None in value:
        raise TypeError
    return _length(value)


def _length(value: Any) -> int:
    if not isinstance(value, str | list | dict):
        raise TypeError
    return len(value)


def _version(value: Any) -> Version:
    found = version_order.parse(_text(value))
    if found is None:
        raise ValueError(value)
    return found
