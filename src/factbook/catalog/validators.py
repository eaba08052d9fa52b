"""Combinators for validating the structure of JSON; each reports every problem as (path, message).

A validator takes the path of a value and the value, and gives the problems found. Those of plain
values return them, as every value of every pushed entity goes through one: a generator takes longer
to begin than they take.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

Problem = tuple[str, str]  # where (a path below the entity) and what
Validator = Callable[[str, Any], Iterable[Problem]]

# What JavaScript's trim() takes off, which differs from what strip() does.
BLANKS = (
    "\t\n\v\f\r \u00a0\u1680"
    + "".join(map(chr, range(0x2000, 0x200B)))
    + ("\u2028\u2029\u202f\u205f\u3000\ufeff")
)


def anything(path: str, value: Any) -> Iterable[Problem]:
    """Any value."""
    return ()


def string(path: str, value: Any) -> Iterable[Problem]:
    """A string, which may be empty."""
    return () if isinstance(value, str) else ((path, "has to be a string"),)


def text(path: str, value: Any) -> Iterable[Problem]:
    """A string that is not empty."""
    valid = isinstance(value, str) and value
    return () if valid else ((path, "has to be a non-empty string"),)


def visible(path: str, value: Any) -> Iterable[Problem]:
    """A string that is not blank."""
    valid = isinstance(value, str) and value.strip(BLANKS)
    return () if valid else ((path, "has to be a string that is not blank"),)


def string_or_boolean(path: str, value: Any) -> Iterable[Problem]:
    """A string, or true or false."""
    valid = isinstance(value, str | bool)
    return () if valid else ((path, "has to be a string or a boolean"),)


def texts(path: str, value: Any) -> Iterable[Problem]:
    """An array of strings that are not empty."""
    if isinstance(value, list) and all(value) and _STRING.issuperset(map(type, value)):
        return ()
    return _TEXTS(path, value)


def strings_by_key(path: str, value: Any) -> Iterable[Problem]:
    """An object whose values are strings."""
    if isinstance(value, dict) and _STRING.issuperset(map(type, value.values())):
        return ()
    return _STRINGS_BY_KEY(path, value)


def form(valid: Callable[[str], bool], message: str, *, most: int | None = None) -> Validator:
    """A string of at most `most` characters that satisfies `valid`."""

    def check(path: str, value: Any) -> Iterable[Problem]:
        if isinstance(value, str) and (most is None or len(value) <= most) and valid(value):
            return ()
        return ((path, message),)

    return check


def word(*words: str) -> Validator:
    """One of the given strings."""
    return form(words.__contains__, f"has to be {' or '.join(words)}")


def array(items: Validator, *, least: int = 0) -> Validator:
    """An array of at least `least` items, each of which passes the validator."""

    def check(path: str, value: Any) -> Iterator[Problem]:
        if not isinstance(value, list):
            yield path, "has to be an array"
            return
        if len(value) < least:
            yield path, f"has to have {least} item{'s' if least > 1 else ''} at least"
        for position, item in enumerate(value):
            yield from items(f"{path}[{position}]", item)

    return check


def mapping(keys: Validator, values: Validator) -> Validator:
    """An object whose keys and values each pass a validator."""

    def check(path: str, value: Any) -> Iterator[Problem]:
        if not isinstance(value, dict):
            yield path, "has to be an object"
            return
        for key, item in value.items():
            below = f"{path}.{key}"
            yield from keys(below, key)
            yield from values(below, item)

    return check


def record(
    required: Mapping[str, Validator] | None = None,
    optional: Mapping[str, Validator] | None = None,
    *,
    others: Validator = anything,
) -> Validator:
    """An object with the given fields; any other field is checked with `others`."""
    required, optional = required or {}, optional or {}
    known = {**required, **optional}

    def check(path: str, value: Any) -> Iterator[Problem]:
        if not isinstance(value, dict):
            yield path, "has to be an object"
            return
        for name in required:
            if name not in value:
                yield _below(path, name), "is required"
        for name, item in value.items():
            yield from known.get(name, others)(_below(path, name), item)

    return check


_STRING: Final = frozenset({str})
_TEXTS: Final = array(text)
_STRINGS_BY_KEY: Final = mapping(anything, string)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
