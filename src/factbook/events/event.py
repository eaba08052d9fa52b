"""Types of events, and their encoding in rows of the store.

A row has one topic. A row about a set or a source is one event; a row about entities covers all or
part of the entities changed by a push, a row about facts all those changed by one write of a
source, and a row about levels those that a transaction changed in one scorecard.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

import msgspec

Topic = Literal["set", "entity", "fact", "source", "check", "level", "exemption"]
EventType = Literal[
    "set.replaced",
    "import.held",
    "entity.added",
    "entity.updated",
    "entity.removed",
    "fact.changed",
    "source.down",
    "source.up",
    "check.changed",
    "check.published",
    "level.changed",
    "exemption.requested",
    "exemption.decided",
    "exemption.expiring",
    "exemption.expired",
]

# Every type, by its topic, and what it tells of.
TYPES: Final[Mapping[EventType, tuple[Topic, str]]] = {
    "set.replaced": ("set", "A set has a new revision: it was pushed, changed or restored."),
    "import.held": ("set", "Removals of an importer wait for a decision."),
    "entity.added": ("entity", "An entity was added to the catalog."),
    "entity.updated": ("entity", "An entity changed, or moved to another set."),
    "entity.removed": ("entity", "An entity was removed from the catalog."),
    "fact.changed": ("fact", "A source wrote different facts about an entity."),
    "source.down": ("source", "Everything failed in a full run of a source."),
    "source.up": ("source", "A source that was down delivered facts again."),
    "check.changed": ("check", "The result of a check changed for an entity."),
    "check.published": ("check", "A version of a check took effect."),
    "level.changed": ("level", "An entity reached another level of a scorecard."),
    "exemption.requested": ("exemption", "Someone requested an exemption for an entity."),
    "exemption.decided": ("exemption", "An exemption was approved, denied or revoked."),
    "exemption.expiring": ("exemption", "An exemption ends within a week."),
    "exemption.expired": ("exemption", "An exemption expired, or a request that nobody decided."),
}

Change = Literal["added", "updated", "removed"]
ExemptionStep = Literal["requested", "decided", "expiring", "expired"]
# Topics whose events have an entity as their subject.
OF_ENTITIES: Final = frozenset[Topic]({"entity", "fact", "check", "level", "exemption"})


class FeedPosition(NamedTuple):
    """A position in the feed: that of a row, and of an event in it."""

    position: int
    item: int


class FeedEvent(NamedTuple):
    """A change; `subject` is the set, entity or source, `at` in milliseconds since the epoch."""

    place: FeedPosition
    type: str
    at: int
    subject: str
    data: dict[str, Any]

    @property
    def id(self) -> str:
        """An id that is unique in this database."""
        return f"{self.place.position}-{self.place.item}"


class EventRow(NamedTuple):
    """A row of the store before it is written: the data of a topic."""

    topic: Topic
    about: str
    content: dict[str, Any]


class NumberedEventRow(NamedTuple):
    """A row of the store with its position."""

    position: int
    at: int
    topic: Topic
    about: str
    content: str


def of_set(
    name: str,
    revision: int,
    by: str,
    item_count: int,
    changes: Mapping[str, int],
    restored: int | None,
) -> EventRow:
    """A new revision of a set, made `by` a user; `restored` is the revision it restored."""
    content = {"revision": revision, "by": by, "itemCount": item_count, "changes": changes}
    if restored is not None:
        content["restored"] = restored
    return EventRow("set", name, content)


def of_held(set_name: str, count: int, reason: str) -> EventRow:
    """Removals from a set of an importer that wait for a decision, and the reason."""
    return EventRow("set", set_name, {"heldCount": count, "reason": reason})


def of_entities(
    set_name: str | None, revision: int, by: str, refs: Mapping[Change, Sequence[str]]
) -> EventRow:
    """Entities changed by a write of the catalog, by kind of change."""
    content: dict[str, Any] = {"revision": revision, "by": by}
    for change, found in refs.items():
        content[change] = found
    return EventRow("entity", set_name or "", content)


def of_facts(source_id: str, changes: list[msgspec.Raw]) -> EventRow:
    """Entities whose facts were changed by a source: pairs of a reference and the changes."""
    return EventRow("fact", source_id, {"changes": changes})


def of_source(source_id: str, change: Literal["down", "up"], reason: str | None) -> EventRow:
    """A source that went down, with the reason, or came up."""
    return EventRow("source", source_id, {"change": change, "reason": reason})


def of_check(check_id: str, changes: Sequence[tuple[str, str, str, msgspec.Raw]]) -> EventRow:
    """Results of a check: a reference, the state before, the one after, and what was written."""
    return EventRow("check", check_id, {"changes": changes})


def of_published_check(check_id: str, version: str) -> EventRow:
    """A version of a check that came into effect."""
    return EventRow("check", check_id, {"version": version})


def of_levels(scorecard_id: str, changes: Sequence[tuple[str, str | None, str | None]]) -> EventRow:
    """Levels of a scorecard: triples of a reference, the level before, and the one after."""
    return EventRow("level", scorecard_id, {"changes": changes})


def of_exemption(step: ExemptionStep, ref: str, exemption: Mapping[str, Any]) -> EventRow:
    """A step of an exemption of an entity, with the exemption after it."""
    return EventRow("exemption", ref, {"step": step, "exemption": exemption})


def events(row: NumberedEventRow) -> Iterator[FeedEvent]:
    """The events of a row."""
    content = msgspec.json.decode(row.content)
    for item, (type_, subject, data) in enumerate(_TELL[row.topic](row.about, content)):
        yield FeedEvent(FeedPosition(row.position, item), type_, row.at, subject, data)


_Said = tuple[str, str, dict[str, Any]]


def _set(name: str, content: dict[str, Any]) -> Iterator[_Said]:
    type_ = "import.held" if "heldCount" in content else "set.replaced"
    yield type_, name, {"set": name, **content}


def _entities(name: str, content: dict[str, Any]) -> Iterator[_Said]:
    data = {"set": name or None, "by": content["by"]}
    if name:
        data["revision"] = content["revision"]
    for change in ("added", "updated", "removed"):
        for ref in content.get(change, ()):
            yield f"entity.{change}", ref, {"entityRef": ref, **data}


def _facts(source_id: str, content: dict[str, Any]) -> Iterator[_Said]:
    for ref, facts in content["changes"]:
        yield "fact.changed", ref, {"entityRef": ref, "source": source_id, "facts": facts}


def _source(source_id: str, content: dict[str, Any]) -> Iterator[_Said]:
    data: dict[str, Any] = {"source": source_id}
    if content["reason"] is not None:
        data["reason"] = content["reason"]
    yield f"source.{content['change']}", source_id, data


def _checks(check_id: str, content: dict[str, Any]) -> Iterator[_Said]:
    if "version" in content:
        yield "check.published", check_id, {"check": check_id, "version": content["version"]}
    for ref, before, after, why in content.get("changes", ()):
        data = {"entityRef": ref, "check": check_id, "from": before, "to": after, "why": why}
        yield "check.changed", ref, data


def _levels(scorecard_id: str, content: dict[str, Any]) -> Iterator[_Said]:
    for ref, before, after in content["changes"]:
        data = {"entityRef": ref, "scorecard": scorecard_id, "from": before, "to": after}
        yield "level.changed", ref, data


def _exemption(ref: str, content: dict[str, Any]) -> Iterator[_Said]:
    data = {"entityRef": ref, "exemption": content["exemption"]}
    yield f"exemption.{content['step']}", ref, data


_TELL: Final = {
    "set": _set,
    "entity": _entities,
    "fact": _facts,
    "source": _source,
    "check": _checks,
    "level": _levels,
    "exemption": _exemption,
}
