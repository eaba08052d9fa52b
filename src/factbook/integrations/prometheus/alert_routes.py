"""Routes of an Alertmanager, and the receivers that an alert reaches.

Source: Alertmanager's documentation of its configuration: an alert goes down the tree of routes,
into the first child that it matches, and on to the next ones while a child says `continue`.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
import yaml

from factbook import safe_yaml, user_patterns
from factbook.errors import InputError
from factbook.outbound.outcomes import UNUSABLE, Missing
from factbook.user_patterns import UserPattern

MOST_NESTED: Final = 100
LONGEST: Final = 256 * 1024

_QUOTED: Final = r'(?P<q>"?)(?P<label>[^=!~"\s]+)(?P=q)\s*(?P<kind>=~|!~|!=|=)\s*"(?P<value>.*)"'
_BARE: Final = r'(?P<label>[^=!~"\s]+)\s*(?P<kind>=~|!~|!=|=)\s*(?P<value>[^"]*)'
_MATCHERS: Final = (re.compile(_QUOTED, re.DOTALL), re.compile(_BARE))
_ESCAPED: Final = re.compile(r'\\([n"\\])')


class UnreadableRoutingError(Exception):
    """The configuration, or a matcher in it, is not understood."""


class _Matcher(NamedTuple):
    """Label matcher; `pattern` is None if the value is compared literally."""

    label: str
    is_positive: bool
    value: str
    pattern: UserPattern | None = None

    def fits(self, labels: Mapping[str, str]) -> bool:
        found = labels.get(self.label, "")
        same = self.pattern.is_whole(found) if self.pattern else found == self.value
        return same is self.is_positive


class _Node(NamedTuple):
    """Node of the routing tree."""

    receiver: str
    matchers: tuple[_Matcher, ...]
    goes_on: bool
    children: "tuple[_Node, ...]"


class Routing(NamedTuple):
    """Routes of a configuration, and the receivers that notify someone."""

    root: _Node
    telling: frozenset[str]

    def leads_on(self, labels: Mapping[str, str]) -> bool:
        """True if an alert reaches a receiver that notifies someone and is not the default one."""
        wanted = self.telling - {self.root.receiver}
        return any(receiver in wanted for receiver in _reached(self.root, labels))


class _Route(msgspec.Struct, rename={"goes_on": "continue"}):
    receiver: str = ""
    match: dict[str, str] = {}
    match_re: dict[str, str] = {}
    matchers: list[str] = []
    goes_on: bool = False
    routes: list["_Route"] = []


class _Configuration(msgspec.Struct):
    route: _Route
    receivers: list[dict[str, Any]] = []


def read(text: str) -> Routing | Missing:
    """The routes of a configuration in YAML, or the reason that any part of it is not understood.

    Patterns are in RE2 syntax; those that Python may read differently, or match in exponential
    time, are not understood.
    """
    try:
        if len(text) > LONGEST:
            return UNUSABLE
        safe_yaml.check(text, MOST_NESTED)
        found = msgspec.convert(safe_yaml.load(text), _Configuration)
        telling = frozenset(str(one.get("name")) for one in found.receivers if _tells(one))
        return Routing(_node(found.route, ""), telling)
    except (yaml.YAMLError, msgspec.ValidationError, UnreadableRoutingError, ValueError):
        return UNUSABLE


def _tells(receiver: Mapping[str, Any]) -> bool:
    """True if a receiver has a notification channel, e.g. `webhook_configs`."""
    return any(str(name).endswith("_configs") and found for name, found in receiver.items())


def _node(route: _Route, inherited: str) -> _Node:
    """A route with inherited values: without a receiver it has its parent's."""
    receiver = route.receiver or inherited
    matchers = (
        *(_matcher(label, "=", value) for label, value in route.match.items()),
        *(_matcher(label, "=~", value) for label, value in route.match_re.items()),
        *map(_parsed, route.matchers),
    )
    children = tuple(_node(child, receiver) for child in route.routes)
    return _Node(receiver, matchers, route.goes_on, children)


def _parsed(text: str) -> _Matcher:
    found = next(filter(None, (form.fullmatch(text.strip()) for form in _MATCHERS)), None)
    if found is None:
        raise UnreadableRoutingError
    value = _ESCAPED.sub(lambda one: "\n" if one[1] == "n" else one[1], found["value"])
    return _matcher(found["label"], found["kind"], value)


def _matcher(label: str, kind: str, value: str) -> _Matcher:
    pattern = _pattern(value) if kind.endswith("~") else None
    return _Matcher(label, kind.startswith("="), value, pattern)


def _pattern(text: str) -> UserPattern:
    """Alertmanager matches with RE2 too."""
    try:
        return user_patterns.compile_whole(text)
    except InputError:
        raise UnreadableRoutingError from None


def _reached(node: _Node, labels: Mapping[str, str]) -> Iterator[str]:
    """The receivers of the deepest routes that an alert reaches from a node that it has reached."""
    deeper = False
    for child in node.children:
        if not all(matcher.fits(labels) for matcher in child.matchers):
            continue
        deeper = True
        yield from _reached(child, labels)
        if not child.goes_on:
            break
    if not deeper:
        yield node.receiver
