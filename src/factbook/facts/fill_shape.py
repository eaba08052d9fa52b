"""Assembly of a metric shape from the stored facts of the sources that can fill it.

Sources that fill a shape name their facts by it: `codehost.pullRequests.total`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from factbook.clock import iso
from factbook.facts import entity_filter, shapes
from factbook.facts.datasource import DataSource
from factbook.facts.merge import Latest, reason_of
from factbook.facts.reasons import (
    NEVER_COLLECTED,
    NO_ANNOTATION,
    NOT_APPLICABLE,
    NOT_CONFIGURED,
    word,
)
from factbook.facts.shapes import Shape

# What one source says stands behind what others do, the later the more.
_HELPLESS = (NOT_APPLICABLE, NEVER_COLLECTED, NO_ANNOTATION)


def filled(
    shape: Shape,
    sources: Iterable[DataSource],
    latest: Mapping[str, Latest],
    entity: Mapping[str, Any] | None,
) -> dict[str, object]:
    """The result for one entity, from the latest facts by source id.

    If several sources have a value, the first one wins. `entity` has the form that the catalog
    shows; it is used only for sources that have stored nothing about it, and may be None if there
    is none. Raises ToolError like `shapes.fill`.
    """
    able = [source for source in sources if _fills(source, shape)]
    values: dict[str, object] = {}
    reasons: dict[str, str] = {}
    times: dict[str, int] = {}
    for member in shape.members:
        for path, _ in member.paths:
            name = f"{shape.name}.{path}"
            asked = [source for source in able if _has(source, name)]
            holder = next((one for one in asked if name in _facts(latest, one)), None)
            if holder is None:
                reasons[path] = _why(name, asked, latest, entity)
                continue
            found = latest[holder.id]
            values[path] = found.facts[name]
            time = found.kept.get(name, found.written_at)
            times[member.name] = min(time, times.get(member.name, time))
    collected_at = {name: iso(time) for name, time in times.items()}
    return shapes.fill(shape, values, reasons, collected_at)


def needs_entity(shape: Shape, sources: Iterable[DataSource], latest: Mapping[str, Latest]) -> bool:
    """Return true if a source of the shape has stored nothing, so that its filter is needed."""
    return any(source.id not in latest for source in sources if _fills(source, shape))


def _fills(source: DataSource, shape: Shape) -> bool:
    return any(fact.name.startswith(f"{shape.name}.") for fact in source.schema)


def _has(source: DataSource, name: str) -> bool:
    return any(fact.name == name for fact in source.schema)


def _facts(latest: Mapping[str, Latest], source: DataSource) -> Mapping[str, object]:
    found = latest.get(source.id)
    return {} if found is None else found.facts


def _why(
    name: str,
    asked: list[DataSource],
    latest: Mapping[str, Latest],
    entity: Mapping[str, Any] | None,
) -> str:
    """The reason for a missing value: of several reasons, the most actionable one.

    A source that failed may still have the value; nothing can be done about a source that has no
    such value, or that the entity does not point to.
    """
    found = [_reason(name, source, latest, entity) for source in asked]
    return min(found, key=_helplessness, default=NOT_CONFIGURED)


def _helplessness(reason: str) -> int:
    said = word(reason)
    return _HELPLESS.index(said) + 1 if said in _HELPLESS else 0


def _reason(
    name: str,
    source: DataSource,
    latest: Mapping[str, Latest],
    entity: Mapping[str, Any] | None,
) -> str:
    stored = latest.get(source.id)
    if stored is not None:
        return reason_of(name, stored.reasons) or NEVER_COLLECTED
    if entity is not None and not entity_filter.matches(source.entity_filter, dict(entity)):
        return NO_ANNOTATION
    return NEVER_COLLECTED
