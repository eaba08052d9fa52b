"""Filters of lists, resources and their changes, as identity providers send them."""

import json
from typing import Any

import msgspec

from factbook.scim import patch, protocol, store
from tests.fuzz.promises import text, tried
from tests.fuzz.target import Target


def filter_(data: bytes) -> None:
    """A filter makes SQL with a parameter for each place, and can be asked of a resource."""
    found = tried(protocol.parse_filter, text(data))
    if found is None:
        return
    for type_ in protocol.ATTRIBUTES:
        condition = tried(store.build_condition, type_, found)
        assert condition is None or condition.sql.count("?") == len(condition.parameters)
    assert protocol.match_filter(found, lambda name, value: True)


def change(data: bytes) -> None:
    """A resource that was read is the same when it is read again, whatever has changed it."""
    try:
        given: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return
    for type_ in protocol.ATTRIBUTES:
        before = tried(protocol.parse_resource, type_, given)
        start = before or {"userName" if type_ == "User" else "displayName": "kim"}
        changes = tried(patch.parse_operations, given)
        after = tried(patch.apply_operations, type_, start, changes) if changes else before
        if after is not None:
            json.dumps(after)
            assert tried(protocol.parse_resource, type_, after) == after


TARGETS = (
    Target("scim-filter", filter_, ("scim.protocol.parse_filter",)),
    Target("scim-change", change, ("scim.protocol.parse_resource", "scim.patch.parse_operations")),
)
