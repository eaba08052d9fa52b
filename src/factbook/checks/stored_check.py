"""A check as it is stored: its documents, versions and slots."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from factbook.storage import Row

# What decides about results; all else is text.
_EVALUATED: Final = ("appliesTo", "applicableWhen", "rule", "onUnknown")
# What decides if scorecards count them.
_COUNTED: Final = ("severity", "effectiveFrom")


class StoredCheck(NamedTuple):
    """A stored check; `draft` is None if everything is published, `slot` before it is in effect."""

    id: str
    draft: dict[str, Any] | None
    published: dict[str, Any] | None
    pending: dict[str, Any] | None
    version: str
    pending_version: str | None
    slot: int | None
    pending_slot: int | None
    evaluated_up_to: int | None
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str
    published_at: int | None
    published_by: str | None
    in_effect_at: int | None

    @property
    def current(self) -> dict[str, Any]:
        """The document in effect, or what comes closest to it before the first publication."""
        return self.published or self.pending or self.draft or {}

    def next_version(self, *, is_text: bool) -> str:
        """The version for the next publication."""
        if self.published is None and self.pending is None:
            return "1.0.0"
        major, minor, patch = numbers(self.pending_version or self.version)
        return f"{major}.{minor}.{patch + 1}" if is_text else f"{major}.{minor + 1}.0"


def read(row: Row) -> StoredCheck:
    """The check of a row."""
    draft, published, pending = (
        None if text is None else msgspec.json.decode(text) for text in row[1:4]
    )
    return StoredCheck(row[0], draft, published, pending, *row[4:])


def is_text(document: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return true if two documents differ in nothing that decides about results."""
    return all(document.get(name) == other.get(name) for name in _EVALUATED)


def counts_alike(document: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return true if scorecards count the results of two documents from the same time on."""
    return all(document.get(name) == other.get(name) for name in _COUNTED)


def numbers(version: str) -> tuple[int, int, int]:
    """The numbers of a version."""
    major, minor, patch = map(int, version.split("."))
    return major, minor, patch
