"""Tests of one value against what is wanted of it, and the order of versions.

Versions are numbers with dots, a pre-release and a build: Semantic Versioning and PEP 440's usual
forms. Anything else has no order, and is no version here.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

_LONGEST_VERSION: Final = 100
_MOST_DIGITS: Final = 18
_DIGITS: Final = re.compile(r"\d+", re.ASCII)


_VERSION: Final = re.compile(
    r"""v?
    (?P<release>\d+(?:\.\d+)*)
    (?:-(?P<semantic>[0-9a-z-]+(?:\.[0-9a-z-]+)*)|(?P<phase>a|b|rc)(?P<number>\d+)|\.post(?P<post>\d+))?
    (?:\+[0-9a-z-]+(?:\.[0-9a-z-]+)*)?""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)


# Numbers of a pre-release come before words, and a pre-release before what it leads to.
_VersionPart = tuple[int, int, str]


Version = tuple[tuple[int, ...], int, tuple[_VersionPart, ...]]


_PRE, _FINAL, _POST = 0, 1, 2


@lru_cache(maxsize=4096)
def parse_version(text: str) -> Version | None:
    """A key that orders versions; None for a text that is no version.

    A leading `v` and zeros at the end do not matter: v1.4 is 1.4.0.
    """
    found = _VERSION.fullmatch(text.strip()) if len(text) <= _LONGEST_VERSION else None
    if found is None or any(len(one) > _MOST_DIGITS for one in _DIGITS.findall(text)):
        return None
    release = [int(number) for number in found["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    if found["semantic"]:
        parts = tuple(map(_parse_version_part, found["semantic"].lower().split(".")))
        return tuple(release), _PRE, parts
    if found["phase"]:
        word = {"a": "alpha", "b": "beta", "rc": "rc"}[found["phase"].lower()]
        return (
            tuple(release),
            _PRE,
            (_parse_version_part(word), _parse_version_part(found["number"])),
        )
    if found["post"]:
        return tuple(release), _POST, (_parse_version_part(found["post"]),)
    return tuple(release), _FINAL, ()


def _parse_version_part(text: str) -> _VersionPart:
    return (0, int(text), "") if _DIGITS.fullmatch(text) else (1, 0, text)


Test = Callable[[Any], bool]


def ignore_case(make: Callable[[Any], Test]) -> Callable[[Any], Test]:
    """The same comparison for which letters of either case are equal."""

    def made(wanted: Any) -> Test:
        test = make(_lower_value(wanted))
        return lambda value: test(_lower_value(value))

    return made


def _lower_value(value: Any) -> Any:
    if isinstance(value, list):
        return [_lower_value(one) for one in value]
    return value.lower() if isinstance(value, str) else value


def is_equal(wanted: Any) -> Test:
    kind = _kind_of_value(wanted)
    if kind in (list, dict):
        return lambda value: _are_equal_within(value, wanted)

    def test(value: Any) -> bool:
        return bool(value == wanted) if type(value) is kind else _are_equal(value, wanted)

    return test


def is_not_equal(wanted: Any) -> Test:
    return _negate_test(is_equal(wanted))


def is_in(wanted: Sequence[Any]) -> Test:
    """Unknown for what is not among the known items where others are null, which could be it."""
    items = frozenset(one for one in _take_list(wanted) if one is not None)
    kinds = set(map(_kind_of_value, items))
    if bool in kinds:
        raise TypeError
    is_whole = None not in wanted

    def test(value: Any) -> bool:
        if kinds and _kind_of_value(value) not in kinds:
            raise TypeError
        if value in items:
            return True
        if is_whole:
            return False
        raise TypeError

    return test


def is_not_in(wanted: Sequence[Any]) -> Test:
    return _negate_test(is_in(wanted))


def contains(wanted: Any) -> Test:
    def test(value: Any) -> bool:
        if isinstance(value, str):
            return _take_text(wanted) in value
        if not _is_list_member(wanted):
            raise TypeError
        members = _take_members(value)
        return wanted in members or _if_all_known(value)

    return test


def does_not_contain(wanted: Any) -> Test:
    return _negate_test(contains(wanted))


def is_less(wanted: float) -> Test:
    bound = _take_number(wanted)

    def test(value: Any) -> bool:
        if type(value) is int or type(value) is float:
            return value < bound
        raise TypeError

    return test


def is_at_most(wanted: float) -> Test:
    bound = _take_number(wanted)

    def test(value: Any) -> bool:
        if type(value) is int or type(value) is float:
            return value <= bound
        raise TypeError

    return test


def is_more(wanted: float) -> Test:
    bound = _take_number(wanted)

    def test(value: Any) -> bool:
        if type(value) is int or type(value) is float:
            return value > bound
        raise TypeError

    return test


def is_at_least(wanted: float) -> Test:
    bound = _take_number(wanted)

    def test(value: Any) -> bool:
        if type(value) is int or type(value) is float:
            return value >= bound
        raise TypeError

    return test


def starts_with(wanted: str) -> Test:
    return lambda value: _take_text(value).startswith(wanted)


def ends_with(wanted: str) -> Test:
    return lambda value: _take_text(value).endswith(wanted)


def contains_any(wanted: Sequence[Any]) -> Test:
    items = _take_members(wanted)

    def test(value: Any) -> bool:
        return not items.isdisjoint(_take_members(value)) or _if_all_known([*value, *wanted])

    return test


def contains_all(wanted: Sequence[Any]) -> Test:
    items = _take_members(wanted)

    def test(value: Any) -> bool:
        if items.issubset(_take_members(value)):
            return not _if_all_known(wanted)
        return _if_all_known(value)

    return test


def is_empty(_: None) -> Test:
    return lambda value: _take_length(value) == 0


def is_not_empty(_: None) -> Test:
    return lambda value: _take_length(value) > 0


def is_at_least_as_large(wanted: int) -> Test:
    return lambda value: _size_of_value(value) >= wanted


def is_at_most_as_large(wanted: int) -> Test:
    return lambda value: _size_of_value(value) <= wanted


def is_version_or_later(wanted: str) -> Test:
    least = _take_version(wanted)
    return lambda value: _take_version(value) >= least


def is_older_version(wanted: str) -> Test:
    return _negate_test(is_version_or_later(wanted))


def _negate_test(test: Test) -> Test:
    return lambda value: not test(value)


def _kind_of_value(value: Any) -> type:
    """The kind of a JSON value; all numbers are of one, and true is no number."""
    kind = type(value)
    return float if kind is int else kind


def _are_equal(value: Any, wanted: Any) -> bool:
    if _kind_of_value(value) is not _kind_of_value(wanted):
        raise TypeError
    return bool(value == wanted)


def _are_equal_within(value: Any, wanted: Any) -> bool:
    """The equality of lists and objects in JSON, in which true is no number either."""
    if type(value) is not type(wanted):
        raise TypeError
    return _are_same_item(value, wanted)


def _are_same_item(one: Any, other: Any) -> bool:
    if _kind_of_value(one) is not _kind_of_value(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_are_same_item, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_are_same_item(one[k], other[k]) for k in one)
    return bool(one == other)


def _take_number(value: Any) -> float:
    if type(value) is int or type(value) is float:
        return value
    raise TypeError


def _take_text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    return value


def _take_list(value: Any) -> list[Any]:
    if type(value) is not list:
        raise TypeError
    return value


def _is_list_member(value: Any) -> bool:
    """Return true for what sets hold; true is no number."""
    return type(value) in (str, int, float)


def _take_members(value: Any) -> frozenset[Any]:
    return frozenset(filter(_is_list_member, _take_list(value)))


def _if_all_known(items: Sequence[Any]) -> bool:
    """False, as no item is the one; raises TypeError if one of them cannot be compared."""
    if all(map(_is_list_member, items)):
        return False
    raise TypeError


def _size_of_value(value: Any) -> int:
    """The length; raises TypeError for a list of which some items are unknown."""
    if isinstance(value, list) and None in value:
        raise TypeError
    return _take_length(value)


def _take_length(value: Any) -> int:
    if not isinstance(value, str | list | dict):
        raise TypeError
    return len(value)


def _take_version(value: Any) -> Version:
    found = parse_version(_take_text(value))
    if found is None:
        raise ValueError(value)
    return found
