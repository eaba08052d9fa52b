"""Annotations that a data source goes by, with their values, for reasons that name them."""

from collections.abc import Mapping
from typing import Any, Final

from factbook.facts.datasource import DataSource
from factbook.facts.reasons import BAD_ANNOTATION, NO_ANNOTATION, word

# Reasons that an annotation explains.
EXPLAINED: Final = frozenset({NO_ANNOTATION, BAD_ANNOTATION, "not-found"})

_PREFIX: Final = "metadata.annotations."
_MOST: Final = 3
_LONGEST: Final = 100


def told(source: DataSource, entity: Mapping[str, Any]) -> str | None:
    """The annotations of the source's filter with their values; None if it names none."""
    names = [
        key.removeprefix(_PREFIX)
        for conditions in source.entity_filter or ()
        for key in conditions
        if key.lower().startswith(_PREFIX)
    ]
    if not names:
        return None
    metadata: Mapping[str, Any] = entity.get("metadata") or {}
    found = {key.lower(): text for key, text in (metadata.get("annotations") or {}).items()}
    given = [name for name in dict.fromkeys(names) if name.lower() in found]
    if not given:
        return f"no annotation {' or '.join(list(dict.fromkeys(names))[:_MOST])}"
    values = [f"{name} is {_brief(str(found[name.lower()]))}" for name in given[:_MOST]]
    return f"annotation {', '.join(values)}"


def explained(reason: str, source: DataSource, entity: Mapping[str, Any]) -> str:
    """A reason, followed by the annotation that it is about."""
    about = told(source, entity) if word(reason) in EXPLAINED else None
    if about is None:
        return reason
    return f"{reason}; {about}" if ":" in reason else f"{reason}: {about}"


def _brief(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
