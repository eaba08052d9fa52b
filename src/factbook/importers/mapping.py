"""Mappings of settings: fields of entities, taken from what a system says of a thing.

    [importers.github.acme.mapping.Component]
    "spec.owner" = "item.topics[?starts_with(@, 'team-')] | [0]"
    "metadata.annotations.example.com/wiki" = "https://wiki.example.com/{{ item.name }}"

A value is an expression of JMESPath, or a text with such expressions in double braces. They are on
a document with two members: `item`, the thing as the system describes it, and `entity`, what the
importer made of it. A value that there is not takes the field away. Entities that somebody wrote in
a file are left alone.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from factbook.datasources.custom import extraction
from factbook.datasources.custom.extraction import NO_SUCH_VALUE, Extractor, Template
from factbook.errors import ConfigurationError, InputError
from factbook.importers.snapshot import ImportedItem, ReadingProblem, Snapshot, SnapshotPart
from factbook.outbound.outcomes import Missing, Outcome

MOST_FIELDS: Final = 100
# For the mapping of everything that one import reads.
LONGEST_SECONDS: Final = 60.0
_EVERY_KIND: Final = ""
# What follows these is one key, whatever dots are in it.
_KEYED: Final = ("metadata.annotations.", "metadata.labels.")
_ROOTS: Final = ("metadata", "spec")
_NO_TEXT: Final = Missing(Outcome.TRANSIENT, "a value between braces is neither text nor number")
_TOO_LATE: Final = f"the mapping of one import took more than {LONGEST_SECONDS:.0f} seconds"

Table = Mapping[str, str | Mapping[str, str]]
Fields = Mapping[str, Extractor]


@dataclass(frozen=True)
class EntityMapping:
    """Fields by the kind of entity in lower case; those of every kind are under an empty one."""

    kinds: Mapping[str, Fields]

    def fields(self, kind: object) -> Fields:
        """The fields of entities of a kind."""
        own = self.kinds.get(str(kind).lower(), {})
        return {**self.kinds.get(_EVERY_KIND, {}), **own}


@dataclass(frozen=True)
class _TemplateText:
    """Text of a template; without one of its values there is none."""

    template: Template

    def of(self, document: Any) -> Any | Missing:
        texts = []
        for part in self.template.parts:
            text = part if isinstance(part, str) else _format_value(part.of(document))
            if isinstance(text, Missing):
                return text
            texts.append(text)
        return "".join(texts)


def parse_mapping(table: Table) -> EntityMapping:
    """The mapping in a table of the settings; raises ConfigurationError with the place."""
    kinds: dict[str, dict[str, Extractor]] = {}
    for kind, path, text in _list_mapping_rows(table):
        place = f'mapping.{kind}."{path}"' if kind else f'mapping."{path}"'
        try:
            _check_field_path(path)
            kinds.setdefault(kind.lower(), {})[path] = _make_extractor(text)
        except InputError as error:
            raise ConfigurationError(f"{place} {error.message}") from None
    if sum(map(len, kinds.values())) > MOST_FIELDS:
        raise ConfigurationError(f"mapping has more than {MOST_FIELDS} fields")
    return EntityMapping(kinds)


def map_snapshot(snapshot: Snapshot, mapping: EntityMapping) -> Snapshot:
    """The snapshot with the mapping applied to its entities.

    One that it fails for is a problem, and what came from its origin before stays.
    """
    end = time.monotonic() + LONGEST_SECONDS
    return replace(snapshot, parts=tuple(_map_part(part, mapping, end) for part in snapshot.parts))


def _map_part(part: SnapshotPart, mapping: EntityMapping, end: float) -> SnapshotPart:
    items, problems = _map_items(part.items, mapping, end)
    unread = {problem.origin for problem in problems}
    return replace(
        part,
        items=tuple(items),
        stand_ins=tuple(_map_items(part.stand_ins, mapping, end)[0]),
        problems=(*part.problems, *problems),
        unread=part.unread | unread,
    )


def _map_items(
    given: Iterable[ImportedItem], mapping: EntityMapping, end: float
) -> tuple[list[ImportedItem], list[ReadingProblem]]:
    items: list[ImportedItem] = []
    problems: list[ReadingProblem] = []
    for item in given:
        found = _map_item(item, mapping.fields(item.entity.get("kind")), end)
        if isinstance(found, ImportedItem):
            items.append(found)
        else:
            problems.append(found)
    return items, problems


def _map_item(item: ImportedItem, fields: Fields, end: float) -> ImportedItem | ReadingProblem:
    """The item with its fields, or the problem of the first one that fails."""
    if item.raw is None or not fields:
        return item
    if time.monotonic() > end:
        return item.problem(_TOO_LATE)
    document = {"item": msgspec.to_builtins(item.raw), "entity": item.entity}
    entity: Any = item.entity
    for path, value in extraction.extract_values(fields, document).items():
        if isinstance(value, Missing) and value != NO_SUCH_VALUE:
            return item.problem(f"the mapping failed: {value.detail}", path)
        there = None if isinstance(value, Missing) or value == "" else value
        try:
            entity = _set_at_path(entity, _split_field_path(path), there)
        except InputError as error:
            return item.problem(f"the mapping failed: {error.message}", path)
    return replace(item, entity=entity)


def _set_at_path(value: Any, segments: Sequence[str], new: Any) -> Any:
    """The value with another one at a path, or without it if that is None."""
    if value is None and new is None:
        return None
    if not (value is None or isinstance(value, Mapping)):
        raise InputError("what it is in is no table")
    first, *rest = segments
    members = dict(value or {})
    inner = _set_at_path(members.get(first), rest, new) if rest else new
    if inner is None:
        members.pop(first, None)
    else:
        members[first] = inner
    return members


def _list_mapping_rows(table: Table) -> Iterator[tuple[str, str, str]]:
    """Kind, field and value of each row."""
    for key, value in table.items():
        if isinstance(value, str):
            yield _EVERY_KIND, key, value
        else:
            yield from ((key, path, text) for path, text in value.items())


def _check_field_path(path: str) -> None:
    """Raise InputError for a path that names no field of the metadata or the spec."""
    first, *rest = segments = _split_field_path(path)
    if first not in _ROOTS or not rest or not all(segments):
        raise InputError("is no field: write metadata.… or spec.…")


def _split_field_path(path: str) -> list[str]:
    for start in _KEYED:
        if path.startswith(start):
            return [*start.rstrip(".").split("."), path.removeprefix(start)]
    return path.split(".")


def _make_extractor(text: str) -> Extractor:
    if "{{" in text or "}}" in text:
        return _TemplateText(extraction.parse_template(text))
    return extraction.compile_expression(text)


def _format_value(found: Any | Missing) -> str | Missing:
    """A value as part of a text; no value for an empty one."""
    match found:
        case Missing():
            return found
        case "":
            return NO_SUCH_VALUE
        case bool():
            return "true" if found else "false"
        case str() | int() | float():
            return str(found)
    return _NO_TEXT
