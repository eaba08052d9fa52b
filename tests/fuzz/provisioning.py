"""Filters of lists, resources and their changes, as identity providers send them."""

import json
from typing import Any

import msgspec

from factbook.scim import attributes, filters, patch, queries
from tests.fuzz.promises import text, tried
from tests.fuzz.target import Target


def filter_(data: bytes) -> None:
    """A filter makes SQL with a parameter for each place, and can be asked of a resource."""
    found = tried(filters.parse, text(data))
    if found is None:
        return
    for type_ in attributes.ATTRIBUTES:
        condition = tried(queries.condition, type_, found)
        assert condition is None or condition.sql.count("?") == len(condition.parameters)
    assert filters.holds(found, lambda name, value: True)


def change(data: bytes) -> None:
    """A resource that was read is the same when it is read again, whatever has changed it."""
    try:
        given: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return
    for type_ in attributes.ATTRIBUTES:
        before = tried(attributes.read, type_, given)
        start = before or {"userName" if type_ == "User" else "displayName": "kim"}
        changes = tried(patch.operations, given)
        after = tried(patch.changed, type_, start, changes) if changes else before
        if after is not None:
            json.dumps(after)
            assert tried(attributes.read, type_, after) == after


TARGETS = (
    Target("scim-filter", filter_, ("scim.filters.parse",)),
    Target("scim-change", change, ("scim.attributes.read",)),
)
