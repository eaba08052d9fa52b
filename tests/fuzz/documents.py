"""Parsers of documents: entities, definitions of sources, and what takes facts out of answers."""

import functools
import sqlite3
from typing import Any

import msgspec

from factbook.api.catalog import Projection
from factbook.catalog import filters, kinds, ref, sets, validation
from factbook.catalog.filters import parse_predicate
from factbook.catalog.sets import Annotator, PushRules
from factbook.catalog.store import conditions
from factbook.catalog.store.index_rows import Derived
from factbook.cli import documents as files
from factbook.cli import source_plans
from factbook.datasources.custom import definition, documents, extraction, sources, yaml_text
from factbook.datasources.custom.documents import UnreadableDocumentError
from factbook.datasources.custom.extraction import NoValueError
from factbook.errors import InvalidItemsError
from factbook.facts import datasource
from factbook.facts.schema import FactType
from factbook.importers import catalog_files
from factbook.importers.catalog_files import (
    FileLocation,
    ReadingBudget,
    match_patterns,
    resolve_target,
)
from factbook.outbound.client import build_address
from factbook.outbound.outcomes import Missing
from tests.fuzz.folders import folder
from tests.fuzz.promises import check_told, json, lines, text, tried
from tests.fuzz.target import Target

_RULES = PushRules(Annotator("factbook", "factbook"))
_ENTITY: dict[str, Any] = {
    "kind": "Component",
    "metadata": {"name": "web", "annotations": {"ci/id": "7", "far": "../../x"}, "tags": ["a", ""]},
    "spec": {"owner": "team", "n": 1.5, "deep": [[{"a": None}, True], "x" * 300]},
}
_BASE = "https://ci.example.com"
# A pattern is searched for once, for every occurrence, and for a number.
_TYPES: tuple[FactType, ...] = ("string", "set", "integer")


def push(data: bytes) -> None:
    """What a push takes is the same when it is pushed again, and derived as it was prepared."""
    items = tried(sets.decode_body, data, _RULES)
    if items is None:
        return
    pushed = tried(sets.prepare_items, items, "set", _RULES)
    for item in pushed.items if pushed else ():
        again = sets.prepare_item(sets.make_raw_item(item.document), "set", _RULES)
        assert again.items == [item]
        entity = msgspec.json.decode(item.document)
        derived = Derived.of(item.ref, item.document)
        assert derived.ref == tuple(ref.EntityRef.of(*derived.ref))
        assert derived.search == conditions.flatten_document(entity)


def entity(data: bytes) -> None:
    """Both sets of rules look at any JSON, and only at it."""
    found = json(data)
    assert all(len(problem) == 2 for problem in validation.find_strict_problems(found))
    validation.problems(found, strict_names=True)
    validation.deeper_than(found, 64)
    if isinstance(found, dict):
        conditions.flatten_document(found)
        kinds.derive_relations("component", "default", found)


def predicate(data: bytes) -> None:
    """A predicate makes SQL with a parameter for each place."""
    condition = tried(parse_predicate, json(data))
    if condition is not None:
        sql, values = condition.sql()
        assert sql.count("?") == len(values)


def projection(data: bytes) -> None:
    """Of an entity only what the paths name is left, and of that everything."""
    given, whole = text(data).partition("\n")[::2]
    found = tried(Projection.of, [given])
    entity = json(whole.encode())
    if found is None or not isinstance(entity, dict):
        return
    kept = found.apply(msgspec.json.encode(entity).decode())
    assert found.apply(kept.decode()) == kept
    assert _is_part(msgspec.json.decode(kept), msgspec.json.decode(msgspec.json.encode(entity)))


def _is_part(part: Any, whole: Any) -> bool:
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and _is_part(one, whole[key]) for key, one in part.items())
    return bool(part == whole)


def filter_of_source(data: bytes) -> None:
    """The filter of a source lets the same entities through in the database and without it."""
    problems: list[str] = []
    found = filters.parse_entity_filter(
        text(data), "", lambda path, message: problems.append(message)
    )
    if problems:
        return
    condition, values = filters.make_filter_condition(found)
    sql = f"SELECT e.id FROM entities e WHERE {condition}"  # noqa: S608 - that is what is tested
    passing = {row[0] for row in _catalog().execute(sql, values)}
    assert passing == {
        number for number, one in enumerate(_ENTITIES) if filters.matches_filter(found, one)
    }


def yaml(data: bytes) -> None:
    """YAML is JSON or refused; what was written is read as it was."""
    try:
        assert msgspec.json.encode(documents.read_body(data, "yaml")) is not None
    except UnreadableDocumentError as error:
        check_told(error)
    found = tried(yaml_text.read_yaml, text(data))
    if found is not None:
        assert yaml_text.read_yaml(yaml_text.write_yaml(found)) == found


def file(data: bytes) -> None:
    """A file of entities, and one that was recorded."""
    for name in ("catalog.yaml", "catalog.json"):
        for document in tried(files.parse_entity_file, data, name) or ():
            assert isinstance(msgspec.json.decode(document.entity), dict)
    place = folder() / "recording.json"
    place.write_bytes(data)
    tried(source_plans.load_recording, place)


def catalog_file(data: bytes) -> None:
    """A catalog file is documents of JSON, each with its line; what it names is in a repository."""
    budget = ReadingBudget()
    content = catalog_files.parse_documents(data, budget)
    for document in content.documents:
        assert document.line > 0
        assert msgspec.json.encode(document.value)
    assert all(problem.message and problem.line >= 0 for problem in content.problems)
    base = FileLocation("a/b", "HEAD", "x/y/catalog-info.yaml")
    given, path = lines(data, 2)
    found = resolve_target(given, base, lambda _: "on another host")
    if isinstance(found, FileLocation):
        assert not found.path.startswith(("/", "../"))
        matched = match_patterns([found.path], [path, base.path], budget)
        assert set(matched[found.path]) <= {path, base.path}


def source(data: bytes) -> None:
    """A definition is read or every mistake of it named; what is shown of it stays the same."""
    document = json(data)
    problems: list[dict[str, str]] = []
    try:
        found = definition.read_source_definition(document)
    except InvalidItemsError as error:
        problems = error.details["problems"]
        assert problems
        assert all(isinstance(one["path"], str) and one["message"] for one in problems)
        assert tried(definition.parse_source_definition, document) is None
        return
    shown = found.source.render()
    assert (
        datasource.parse_source(msgspec.json.decode(msgspec.json.encode(shown))).render() == shown
    )
    collected = sources.facts_of_document(found, _ENTITY)
    assert msgspec.json.encode(collected.values)
    assert found.source.check(collected.values)


def expression(data: bytes) -> None:
    """An expression and a pattern are bounded, whatever they say and are put to."""
    given, document = lines(data, 2)
    body = document.encode()
    try:
        read = documents.read_body(body, documents.FORMATS[len(given) % len(documents.FORMATS)])
    except UnreadableDocumentError:
        read = _ENTITY
    _extracted(given, read)


def _extracted(given: str, document: Any) -> None:
    extractors: list[extraction.Extractor] = []
    if found := tried(extraction.compile_expression, given):
        extractors.append(found)
    for type_ in _TYPES:
        if pattern := tried(extraction.compile_pattern, given, type_):
            extractors.append(pattern)
    by_name = {str(i): one for i, one in enumerate(extractors)}
    for value in extraction.extract_values(by_name, document).values():
        assert isinstance(value, Missing) or msgspec.json.encode(value) is not None


def template(data: bytes) -> None:
    """A value never changes what the text around it means."""
    given, value = lines(data, 2)
    found = tried(extraction.parse_template, given)
    if found is None:
        return
    entity = _ENTITY | {"given": value}
    for escape in (extraction.escape_path, extraction.keep_value, extraction.escape_header):
        try:
            shown = found.render(entity, escape)
        except NoValueError as error:
            check_told(error)
            continue
        assert isinstance(shown, str)
    try:
        part = extraction.escape_path(value)
    except NoValueError:
        return
    assert build_address(_BASE, f"/a/{part}/b", {}) == f"{_BASE}/a/{part}/b"


def _pushed(number: int, **metadata: Any) -> dict[str, Any]:
    kinds = ("Component", "Resource", "API")
    return {
        "apiVersion": "example.com/v1",
        "kind": kinds[number % 3],
        "metadata": {"name": f"n{number}", "uid": f"uid-{number}", **metadata},
        "spec": {"type": ["service", "website", 1, 1.0, True, None, "x" * 201][number % 7]},
    }


_ENTITIES = [
    _pushed(0, tags=["Red", "blue", ""], annotations={"github.com/Slug": "a/b"}),
    _pushed(1, namespace="Away", note="", tags=[]),
    _pushed(2, note="null", labels={"env": "Prod", "ä": "Ä"}),
    _pushed(3, note="true", tags=["a.b"], a={"b": "c"}),
    _pushed(4, note=10**20, title="z" * 200),
    _pushed(5, note=1e300, title="z" * 201),
    _pushed(6, note=-0.0, tags=["x" * 199, "1"]),
]


@functools.cache
def _catalog() -> sqlite3.Connection:
    """The entities as the database of a catalog holds them, as far as filters look at it."""
    database = sqlite3.connect(":memory:")
    database.executescript(
        """CREATE TABLE entities (id INTEGER, uid TEXT, ref TEXT, kind TEXT, namespace TEXT,
            name TEXT);
        CREATE TABLE search_keys (id INTEGER, key TEXT);
        CREATE TABLE search (key_id INTEGER, value TEXT, original TEXT, entity_id INTEGER);
        CREATE TABLE relations (source_id INTEGER, type TEXT, target_ref TEXT)"""
    )
    keys: dict[str, int] = {}
    for number, one in enumerate(_ENTITIES):
        metadata = one["metadata"]
        own = ref.EntityRef.of(one["kind"], metadata.get("namespace", "default"), metadata["name"])
        row = (number, metadata["uid"], str(own), *own)
        database.execute("INSERT INTO entities VALUES (?, ?, ?, ?, ?, ?)", row)
        for key, value, original in conditions.flatten_document(one):
            found = (keys.setdefault(key, len(keys)), value, original, number)
            database.execute("INSERT INTO search VALUES (?, ?, ?, ?)", found)
    database.executemany(
        "INSERT INTO search_keys VALUES (?, ?)", [(n, key) for key, n in keys.items()]
    )
    return database


TARGETS = (
    Target("push", push, ("catalog.sets.decode_body",), share=60),
    Target("entity", entity, (), share=60),
    Target("predicate", predicate, ("catalog.filters.parse_predicate",), share=60),
    Target("projection", projection, (), share=40),
    Target("entity-filter", filter_of_source, ("catalog.filters.parse_entity_filter",), share=40),
    Target(
        "yaml",
        yaml,
        (
            "safe_yaml.load",
            "safe_yaml.load_as_json",
            "datasources.custom.documents.read_body",
            "datasources.custom.yaml_text.read_yaml",
        ),
        share=60,
    ),
    Target(
        "file",
        file,
        ("cli.documents.parse_entity_file", "cli.source_plans.load_recording"),
        share=40,
    ),
    Target(
        "catalog-file",
        catalog_file,
        ("importers.catalog_files.parse_documents",),
        share=40,
    ),
    Target(
        "definition",
        source,
        (
            "datasources.custom.definition.parse_source_definition",
            "datasources.custom.definition.read_source_definition",
            "facts.datasource.parse_source",
            "datasources.custom.sources.facts_of_document",
        ),
        share=40,
    ),
    # Extraction has bounds of its own, two seconds and what the last extractor takes.
    Target("expression", expression, (), share=15, seconds=4),
    Target("template", template, ("datasources.custom.extraction.parse_template",), share=40),
)
