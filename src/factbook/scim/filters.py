"""Filters of lists and of the paths of changes (RFC 7644, 3.4.2.2): `eq`, `and`, `or`, brackets.

Other operators are refused: what an identity provider asks for is one resource by its name or id.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from factbook.errors import InputError

LONGEST: Final = 2_000
_DEEPEST: Final = 10
_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<mark>[()\[\]])|(?P<text>"(?:[^"\\]|\\["\\/bfnrtu])*")|(?P<word>[^\s()\[\]"]+))"""
)
_WORDS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}
_KNOWN: Final = frozenset({"ne", "co", "sw", "ew", "gt", "ge", "lt", "le", "pr"})


class Equals(NamedTuple):
    """The attribute has this value."""

    attribute: str
    value: Any


class Both(NamedTuple):
    """Each of the conditions holds."""

    conditions: tuple["ScimFilter", ...]


class Either(NamedTuple):
    """Any of the conditions holds."""

    conditions: tuple["ScimFilter", ...]


ScimFilter = Equals | Both | Either


def parse(text: str) -> ScimFilter:
    """The filter; raises InputError with the type invalidFilter."""
    if len(text) > LONGEST:
        raise refused(f"A filter has at most {LONGEST} characters.")
    parser = _FilterParser(list(_tokens(text)))
    found = parser.either(0)
    if parser.peek():
        raise refused(f"The filter goes on after its end: {parser.peek()[:40]}")
    return found


def holds(condition: ScimFilter, equal: Callable[[str, Any], bool]) -> bool:
    """True if the filter holds, where `equal` compares an attribute with a value."""
    if isinstance(condition, Equals):
        return equal(condition.attribute, condition.value)
    found = (holds(each, equal) for each in condition.conditions)
    return all(found) if isinstance(condition, Both) else any(found)


def values(condition: ScimFilter) -> Mapping[str, Any]:
    """The value of each attribute that a filter of nothing but `eq` and `and` names."""
    if isinstance(condition, Equals):
        return {condition.attribute: condition.value}
    if isinstance(condition, Either):
        return {}
    return {name: value for each in condition.conditions for name, value in values(each).items()}


def comparisons(condition: ScimFilter) -> int:
    """The number of comparisons in a filter."""
    if isinstance(condition, Equals):
        return 1
    return sum(map(comparisons, condition.conditions))


def refused(message: str) -> InputError:
    """The error for a filter that is not understood or not offered."""
    return InputError(message, scimType="invalidFilter")


def _tokens(text: str) -> Iterator[str]:
    text, position = text.strip(), 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise refused(f"The filter is not understood from here: {text[position:][:40]}")
        yield match["mark"] or match["text"] or match["word"]
        position = match.end()


class _FilterParser:
    """Reader of the tokens of a filter, by descent; `and` binds before `or`."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._position = 0

    def peek(self) -> str:
        """The next token, empty at the end."""
        rest = self._tokens[self._position : self._position + 1]
        return rest[0] if rest else ""

    def take(self) -> str:
        """Take the next token."""
        token = self.peek()
        if not token:
            raise refused("The filter ends too early.")
        self._position += 1
        return token

    def either(self, depth: int) -> ScimFilter:
        """Conditions with `or` between them."""
        found = [self.both(depth)]
        while self.peek().lower() == "or":
            self.take()
            found.append(self.both(depth))
        return found[0] if len(found) == 1 else Either(tuple(found))

    def both(self, depth: int) -> ScimFilter:
        """Conditions with `and` between them."""
        found = [self.one(depth)]
        while self.peek().lower() == "and":
            self.take()
            found.append(self.one(depth))
        return found[0] if len(found) == 1 else Both(tuple(found))

    def one(self, depth: int) -> ScimFilter:
        """A comparison, or conditions in brackets."""
        if depth > _DEEPEST:
            raise refused(f"A filter is nested {_DEEPEST} deep at most.")
        if self.peek() == "(":
            self.take()
            found = self.either(depth + 1)
            self._expect(")")
            return found
        attribute = self.take()
        if self.peek() == "[":
            self.take()
            found = _within(attribute, self.either(depth + 1))
            self._expect("]")
            return found
        return self._comparison(attribute)

    def _comparison(self, attribute: str) -> Equals:
        if attribute[0] in '"()[]':
            raise refused("A comparison begins with an attribute.")
        operator = self.take().lower()
        if operator != "eq":
            known = operator in _KNOWN
            told = f"{operator[:40]} is not offered" if known else f"{operator[:40]} is no operator"
            raise refused(f"{told}: compare with eq.")
        return Equals(attribute, _value(self.take()))

    def _expect(self, mark: str) -> None:
        if self.take() != mark:
            raise refused(f"A {mark} is missing in the filter.")


def _within(attribute: str, condition: ScimFilter) -> ScimFilter:
    """The conditions on the values of an attribute, such as `members[value eq "1"]`.

    Raises InputError for several: they would have to hold of the same value.
    """
    if not isinstance(condition, Equals):
        raise refused(f"{attribute[:40]}[…] takes one comparison.")
    return Equals(f"{attribute}.{condition.attribute}", condition.value)


def _value(token: str) -> Any:
    if token.startswith('"'):
        return _text(token)
    if token.lower() in _WORDS:
        return _WORDS[token.lower()]
    raise refused(f"{token[:40]} is no value: write texts between quotes, true or false.")


def _text(token: str) -> str:
    """The text between quotes, with the escapes of JSON."""
    try:
        text: str = json.loads(token, strict=False)
        text.encode()
    except ValueError:
        raise refused(f"{token[:40]} is no text of JSON.") from None
    return text
