"""An entity as evaluations see it: its document, latest facts and check states."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, Self

from factbook.catalog import kinds
from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.checks import state
from factbook.checks.rules.language import CHECKS, ENTITY, FactReference
from factbook.facts.freshness import Latest, find_reason
from factbook.facts.schema import NEVER_COLLECTED, NOT_APPLICABLE

_NAMESPACE: Final = "metadata.namespace"
_NO_FACTS: Final[Mapping[str, Latest]] = {}
# The reason for a comparison with a check whose state is unknown.
CHECK_UNKNOWN: Final = "check-unknown"
# Steps per check and entity; a step takes about 20 nanoseconds at worst.
CHECK_STEPS: Final = 5_000_000
# States that say nothing about the entity.
_SILENT: Final = frozenset({state.NONE, state.UNKNOWN})


Document = Mapping[str, Any]


_NO_DOCUMENT: Final[Document] = {}


class TooCostlyError(ValueError):
    """The check takes more steps for an entity than it may."""


class CheckedEntity:
    """An entity and the data that checks read; the document may be a function that decodes it."""

    __slots__ = (
        *("_at", "_document", "_read_document", "_steps", "_steps_before", "facts", "most_steps"),
        *("ref", "states", "values"),
    )

    def __init__(
        self,
        ref: str,
        document: Document | Callable[[], Document],
        facts: Mapping[str, Latest],
        states: Mapping[str, int] | None = None,
    ) -> None:
        """`facts` are the latest of each source, `states` other checks' states by check id."""
        self.ref = ref
        self.facts = facts
        self.states: Mapping[str, int] = {} if states is None else states
        # Only the values, which comparisons read.
        self.values: Mapping[str, Mapping[str, Any]] = {
            source: latest.facts for source, latest in facts.items()
        }
        self._document = None if callable(document) else document
        self._read_document = document if callable(document) else None
        # Values by path: several checks read the same paths.
        self._at: dict[str, Any] = {}
        # Steps per check for patterns and paths.
        self.most_steps = CHECK_STEPS
        self._steps = self._steps_before = 0

    @property
    def steps(self) -> int:
        """The steps of all checks so far."""
        return self._steps_before + self._steps

    @property
    def steps_left(self) -> int:
        """The steps left for the check under evaluation."""
        return self.most_steps - self._steps

    def begin_check(self) -> None:
        """Start counting the steps of the next check."""
        self._steps_before += self._steps
        self._steps = 0

    def spend(self, steps: int) -> None:
        """Count steps in advance; raises TooCostlyError beyond the limit of a check."""
        if self._steps + steps > self.most_steps:
            raise TooCostlyError
        self._steps += steps

    @classmethod
    def of_values(cls, values: Mapping[str, Mapping[str, Any]]) -> Self:
        """An entity for checks that read only fact values, by source."""
        entity = cls("", _NO_DOCUMENT, _NO_FACTS)
        entity.values = values
        return entity

    @property
    def document(self) -> Document:
        """The entity as the catalog shows it."""
        if self._document is None and self._read_document is not None:
            self._document = self._read_document()
        return self._document or {}

    def value(self, fact: FactReference) -> Any | None:
        """The value before `path` is applied; None if it is unknown."""
        if fact.source == ENTITY:
            return self.at(fact.fact)
        if fact.source == CHECKS:
            return self.state_word(fact.fact)
        return self.values.get(fact.source, {}).get(fact.fact)

    def at(self, path: str) -> Any | None:
        """The document value at a dotted path; None if there is none."""
        if path in self._at:
            return self._at[path]
        found = self._at[path] = read_document_path(self.document, path)
        return found

    def state_word(self, check_id: str) -> str | None:
        """The state of another check as a word; None if it is unknown."""
        found = self.states.get(check_id, state.NONE)
        return None if found in _SILENT else state.name_state(found)

    def reason(self, fact: FactReference) -> str:
        """The reason why a value is unknown, which may have details after it."""
        if fact.source == ENTITY:
            return f"{NOT_APPLICABLE}: the entity has no {fact.fact}"
        if fact.source == CHECKS:
            is_evaluated = self.states.get(fact.fact, state.NONE) != state.NONE
            return CHECK_UNKNOWN if is_evaluated else NEVER_COLLECTED
        latest = self.facts.get(fact.source)
        found = None if latest is None else find_reason(fact.fact, latest.reasons)
        return found or NEVER_COLLECTED

    def time(self, fact: FactReference) -> int | None:
        """The collection time of a value; None if there is none."""
        latest = self.facts.get(fact.source)
        if latest is None or fact.fact not in latest.facts:
            return None
        return latest.kept.get(fact.fact, latest.written_at)

    def is_kept(self, fact: FactReference) -> bool:
        """Return true if the value is an old one that recent collections could not renew."""
        latest = self.facts.get(fact.source)
        return latest is not None and fact.fact in latest.facts and fact.fact in latest.kept


def read_document_path(document: Document, path: str) -> Any | None:
    """The entity's value at a dotted path, in any case, with the rules of catalog filters.

    Keys may have dots. A path through a list gives a list, as does `relations.TYPE`, which gives
    targets. None if there is no value.
    """
    if read := kinds.ESSENTIAL_READERS.get(path):
        return read(document)
    # Most paths have the same case as the document.
    value: Any = document
    for key in _split_path(path):
        if type(value) is not dict:
            value = None
            break
        value = value.get(key)
    if value is None:
        value = _read_caseless_path(document, path.lower())
    return DEFAULT_NAMESPACE if value is None and path.lower() == _NAMESPACE else value


@lru_cache(maxsize=4096)
def _split_path(path: str) -> tuple[str, ...]:
    """The keys of a path; annotation and label names may have dots."""
    parts = path.split(".", 2)
    if len(parts) == 3 and parts[1] in ("annotations", "labels"):
        return tuple(parts)
    return tuple(path.split("."))


def _read_caseless_path(document: Document, path: str) -> Any | None:
    head, _, type_ = path.partition(".")
    if head == "relations" and type_:
        listed = document.get("relations", ())
        targets = [one["targetRef"] for one in listed if one["type"].lower() == type_]
        return targets or None
    return _read_below(document, path)


def _read_below(value: Any, path: str) -> Any | None:
    if not path:
        return value
    if isinstance(value, list):
        found = [_read_below(one, path) for one in value]
        # Elements without the value stay as None: some elements do have the value.
        return None if all(one is None for one in found) else found
    if not isinstance(value, Mapping):
        return None
    for key, child in value.items():
        name = key.lower()
        if path == name:
            return child
        if path.startswith(f"{name}."):
            below = _read_below(child, path[len(name) + 1 :])
            if below is not None:
                return below
    return None
