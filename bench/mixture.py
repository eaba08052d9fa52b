"""What many clients ask at once: the calls of a company's agents, scripts and jobs, mixed."""

import random
from collections.abc import Sequence
from urllib.parse import quote

import msgspec

from bench import catalog
from bench.catalog import Entity, Key
from bench.load import Call
from bench.run import by_name
from bench.service import CATALOG, PUSH, TOOLS, tool_call

# How many of a thousand calls are of each kind; the rest asks for the facts of one entity.
_BY_NAME, _BY_REFS, _PAGES, _TEXTS, _METRICS, _PUSHES = 250, 100, 60, 10, 100, 2
_SOURCE = "entity-metadata"
_PUSHED = 100


def calls(keys: Sequence[Key], items: Sequence[Entity], seed: int = 1) -> list[Call]:
    """A thousand calls in the shares of this module; some of the pushes change one entity."""
    chance = random.Random(seed)
    found = [Call("GET", by_name(chance.choice(keys))) for _ in range(_BY_NAME)]
    found += [_by_refs(chance.choices(keys, k=20)) for _ in range(_BY_REFS)]
    found += [_page(chance.choice(items)) for _ in range(_PAGES)]
    found += [_text(chance.choice(keys)) for _ in range(_TEXTS)]
    found += [_tool("get-entity-compliance", chance.choice(keys)) for _ in range(_METRICS)]
    found += pushes(items)
    while len(found) < 1000:
        found.append(_tool("get-entity-facts", chance.choice(keys), dataSourceId=_SOURCE))
    return found


def pushes(items: Sequence[Entity]) -> list[Call]:
    """The same small set in two forms, of which one entity differs: some pushes change it."""
    first = [_renamed(entity, number) for number, entity in enumerate(items[:_PUSHED])]
    second = catalog.changed(first, 1 / _PUSHED)
    path = f"{PUSH}/sets/mixture"
    return [Call("PUT", path, catalog.body(form).decode()) for form in (first, second)]


def _renamed(entity: Entity, number: int) -> Entity:
    metadata = entity["metadata"] | {"name": f"mixture-{number:04}"}
    return entity | {"metadata": metadata}


def _by_refs(keys: Sequence[Key]) -> Call:
    body = msgspec.json.encode({"entityRefs": [_ref(key) for key in keys]})
    return Call("POST", f"{CATALOG}/by-refs", body.decode())


def _page(entity: Entity) -> Call:
    wanted = f"kind={entity['kind']},spec.owner={entity['spec'].get('owner', 'team-1')}"
    return Call("GET", f"{CATALOG}/by-query?limit=20&filter={quote(wanted)}")


def _text(key: Key) -> Call:
    text = f"fullTextFilterTerm={quote(key.name)}&fullTextFilterFields=metadata.name"
    return Call("GET", f"{CATALOG}/by-query?limit=20&{text}")


def _tool(tool: str, key: Key, **arguments: str) -> Call:
    return Call("POST", TOOLS, tool_call(tool, {"entityRef": _ref(key), **arguments}))


def _ref(key: Key) -> str:
    return f"{key.kind}:default/{key.name}"
