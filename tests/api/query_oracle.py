"""The catalog API's rules of predicates, full text and facets once more, in plain Python."""

import random
from collections import Counter
from typing import Any

from tests.api.oracle import KEYS, Entity, Index, index, ref

Predicate = dict[str, Any]


def predicate(chance: random.Random, entities: list[Entity], depth: int = 0) -> Predicate:
    """A made-up predicate, most of whose values occur."""
    kind = chance.choice(["$all", "$any", "$not"]) if depth < 3 and chance.random() < 0.5 else ""
    if kind == "$not":
        return {"$not": predicate(chance, entities, depth + 1)}
    if kind:
        count = chance.choice([0, 1, 2, 2, 3])
        return {kind: [predicate(chance, entities, depth + 1) for _ in range(count)]}
    keys = chance.sample(KEYS, chance.choice([0, 1, 1, 2]))
    return {key: _value(chance, key, entities) for key in keys}


def _value(chance: random.Random, key: str, entities: list[Entity]) -> Any:
    there = sorted(
        value
        for entity in entities
        for value in index(entity).get(key.lower(), ())
        if value is not None
    )
    one = chance.choice([*there, "none"])
    return chance.choice(
        [
            one,
            one.upper(),
            {"$exists": chance.random() < 0.5},
            {"$in": [one, "none", 2]},
            {"$hasPrefix": one[: chance.randint(0, 3)].upper()},
            {"$contains": one},
        ]
    )


def fits(rows: Index, query: Predicate) -> bool:
    """Whether an entity with this index meets a predicate."""
    if "$all" in query:
        return all(fits(rows, part) for part in query["$all"])
    if "$any" in query:
        return any(fits(rows, part) for part in query["$any"])
    if "$not" in query:
        return not fits(rows, query["$not"])
    return all(_holds(rows.get(key.lower()), value) for key, value in query.items())


def _holds(values: set[str | None] | None, wanted: Any) -> bool:
    there = {value for value in values or () if value is not None}
    match wanted:
        case {"$exists": expected}:
            return (values is not None) is expected
        case {"$in": listed}:
            return bool(there & {str(one).lower() for one in listed})
        case {"$hasPrefix": prefix}:
            return any(value.startswith(prefix.lower()) for value in there)
        case {"$contains": one} | one:
            return str(one).lower() in there


def contains(rows: Index, term: str, fields: list[str]) -> bool:
    """Whether the term occurs in one of the fields."""
    return any(
        term.strip().lower() in value
        for field in fields
        for value in rows.get(field.lower(), ())
        if value is not None
    )


def facet(entities: list[Entity], key: str) -> list[dict[str, Any]]:
    """The values of a path with the number of entities that have each, as they were written."""
    counts = Counter(value for entity in entities for value in _written(entity, key))
    return [
        {"value": value, "count": counts[value]}
        for value in sorted(counts, key=lambda value: (value.lower(), value))
    ]


def _written(entity: Entity, key: str) -> set[str]:
    if key.startswith("relations."):
        type_ = key.removeprefix("relations.")
        return {one["targetRef"] for one in entity["relations"] if one["type"] == type_}
    if key == "metadata.namespace":
        return {entity["metadata"].get("namespace", "default")}
    found: list[Any] = [entity]
    for part in ("metadata", "spec"):
        if key.startswith(f"{part}."):
            found, key = [entity[part]], key.removeprefix(f"{part}.")
    for part in key.split(".") if not key.startswith("annotations.") else key.split(".", 1):
        found = [child for value in found for child in _children(value, part)]
    return {text for one in found if (text := _text(one)) is not None}


def _children(value: Any, part: str) -> list[Any]:
    below = value.get(part) if isinstance(value, dict) else None
    return below if isinstance(below, list) else [below]


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, dict) or (isinstance(value, str) and len(value) > 200):
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def refs(entities: list[Entity]) -> list[str]:
    """The references of entities."""
    return [ref(entity) for entity in entities]
