"""The catalog API's rules of filter and order once more, in plain Python over whole entities."""

import random
from collections.abc import Iterator
from typing import Any

Entity = dict[str, Any]
Index = dict[str, set[str | None]]  # None: the key is there and equals nothing

KEYS = (
    "kind",
    "metadata.name",
    "metadata.namespace",
    "metadata.labels.env",
    "metadata.annotations.example.com/Slug",
    "metadata.tags",
    "metadata.tags.red",
    "metadata.Note",
    "spec.tier",
    "spec.deep.list",
    "spec.deep.list.blue",
    "spec.deep",
    "relations.ownedBy",
    "relations.dependencyOf",
    "relations.dependsOn",
    "spec.absent",
)
_TEXTS = ("red", "Red", "blue", "Green", "", "ä", "Ä", "z" * 200, "z" * 201, "a=b", " padded")


def entity(chance: random.Random, number: int) -> Entity:
    """A made-up entity; few values, so that filters find several."""
    kind = chance.choice(["Component", "Resource", "API", "Thing"])
    metadata: Entity = {"name": f"{chance.choice('abAB')}{number}"}
    spec: Entity = {"owner": chance.choice(["team-a", "user:Kim", "resource:a1"])}
    if chance.random() < 0.4:
        metadata["namespace"] = "other"
    if chance.random() < 0.5:
        metadata["labels"] = {"env": chance.choice(["Prod", "dev", ""])}
    if chance.random() < 0.5:
        metadata["annotations"] = {"example.com/Slug": chance.choice(_TEXTS)}
    if chance.random() < 0.6:
        metadata["tags"] = [chance.choice(["red", "RED", "blue", "b:c"]) for _ in range(2)]
    if chance.random() < 0.7:
        metadata["Note"] = chance.choice(_TEXTS)
    if chance.random() < 0.8:
        spec["tier"] = chance.choice([1, 2, 10, 2.5, True, False, None, "1", "true"])
    if chance.random() < 0.6:
        spec["deep"] = {"list": [chance.choice(_TEXTS), {"in": number % 3}, 1]}
    if kind in ("Component", "Resource"):
        spec["dependsOn"] = [f"Resource:{chance.choice(['default', 'other'])}/A{number - 1}"]
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": metadata, "spec": spec}


def filters(chance: random.Random, entities: list[Entity]) -> list[str]:
    """Up to three `filter` parameters, most of whose values occur."""
    return [
        ",".join(_condition(chance, entities) for _ in range(chance.choice([1, 1, 2, 3, 6])))
        for _ in range(chance.choice([0, 1, 1, 2, 3]))
    ]


def orders(chance: random.Random) -> list[str]:
    """Up to three `order` parameters."""
    keys = [key for key in KEYS if not key.startswith("relations.")]
    return [
        f"{chance.choice(['asc', 'desc'])}:{chance.choice(keys)}"
        for _ in range(chance.choice([0, 1, 1, 2, 3]))
    ]


def ref(entity: Entity) -> str:
    """The canonical reference."""
    metadata = entity["metadata"]
    space = metadata.get("namespace", "default")
    return f"{entity['kind']}:{space}/{metadata['name']}".lower()


def expected(entities: list[Entity], filters: list[str], orders: list[str]) -> list[str]:
    """The references of what passes the filters, in this order."""
    indexes = {ref(entity): index(entity) for entity in entities}
    sets = [parsed for text in filters if (parsed := _parsed(text))]
    found = sorted(
        ref for ref, rows in indexes.items() if not sets or any(_fits(rows, one) for one in sets)
    )
    for order in reversed(orders):
        direction, _, field = order.partition(":")
        values = {ref: _sort_value(indexes[ref], field) for ref in found}
        lacking = [ref for ref in found if values[ref] is None]
        having = [ref for ref in found if values[ref] is not None]
        having.sort(key=lambda ref: values[ref] or "", reverse=direction == "desc")
        found = having + lacking
    return found


def index(entity: Entity) -> Index:
    """Every flattened key with its values, all in lower case."""
    rows: Index = {}
    for key, value in _walk("", entity):
        rows.setdefault(key, set()).add(value)
    for relation in entity["relations"]:
        rows.setdefault(f"relations.{relation['type']}".lower(), set()).add(relation["targetRef"])
    rows["metadata.namespace"] = {entity["metadata"].get("namespace", "default").lower()}
    return rows


def _walk(path: str, value: Any) -> Iterator[tuple[str, str | None]]:
    if path in ("metadata.etag", "metadata.namespace", "relations", "status"):
        return
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _walk(f"{path}.{key}".removeprefix(".").lower(), child)
    elif isinstance(value, list):
        for child in value:
            yield from _walk(path, child)
            if isinstance(child, str) and len(path) + len(child) < 200:
                yield f"{path}.{child}".lower(), "true"
    elif value is None or (isinstance(value, str) and len(value) > 200):
        yield path, None
    else:
        yield path, str(value).lower()


def _condition(chance: random.Random, entities: list[Entity]) -> str:
    key = chance.choice(KEYS)
    if chance.random() < 0.2:
        return key
    there = {value for entity in entities for value in index(entity).get(key.lower(), ())}
    value = chance.choice([*sorted(value for value in there if value is not None), "none"])
    return f"{key}={chance.choice([value, value.upper()])}"


def _parsed(text: str) -> dict[str, set[str] | None]:
    found: dict[str, set[str] | None] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        key, equals, value = part.partition("=")
        values = found.setdefault(key.strip().lower(), None)
        if equals:
            found[key.strip().lower()] = (values or set()) | {value.strip().lower()}
    return found


def _fits(rows: Index, conditions: dict[str, set[str] | None]) -> bool:
    return all(
        key in rows if values is None else bool(values & rows.get(key, set()))
        for key, values in conditions.items()
    )


def _sort_value(rows: Index, field: str) -> str | None:
    return min((value for value in rows.get(field.lower(), ()) if value is not None), default=None)
