"""Conversion of pushed items to entities ready to store, and the rules of a push."""

import hashlib
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self
from urllib.parse import quote

import msgspec
from msgspec import Struct

from factbook import json_parts
from factbook.catalog import kinds, people_trust, validation
from factbook.catalog.ref import DEFAULT_NAMESPACE, EntityRef
from factbook.catalog.validation import MANAGED_BY_LOCATION, MANAGED_BY_ORIGIN_LOCATION, Problem
from factbook.errors import InputError, InvalidItemsError, PayloadTooLargeError, in_words, problem
from factbook.schemas.catalog import Notice
from factbook.settings import Settings

Entity = dict[str, Any]


# The default limit of a set.
MOST_ITEMS: Final = 100_000
_PLAIN_PATH = re.compile(r"[a-z0-9._/:-]*")
# The parts of `metadata` with their own limits.
_PARTS = ("labels", "annotations", "tags", "links")

_encode = msgspec.json.Encoder().encode

# Problems listed for one push.
_MOST_PROBLEMS: Final = 10_000
_MOST_WARNINGS: Final = 10_000
_MORE_PROBLEMS: Final = f"there are more than {_MOST_PROBLEMS:,} problems; the rest is not listed"
# Limit on an entity's values, lists and objects together, as a multiple of its limit on values.
_PARTS_OF_VALUE: Final = 4


@dataclass(frozen=True)
class Annotator:
    """Writer of the service's annotations, with the configured keys."""

    word: str
    domain: str

    @property
    def base_path(self) -> str:
        """The path of the push interface."""
        return f"/api/catalog/{self.word}-entities"

    def annotate(self, annotations: dict[str, str], ref: str, set_name: str | None) -> None:
        """Add the service's annotations, replacing client values under the same keys."""
        entities = self._entities
        # Removed first: an entity that is read and pushed back keeps its order and etag.
        for key in self._keys:
            annotations.pop(key, None)
        if set_name is not None:
            annotations[self._entity_set] = set_name
        annotations[MANAGED_BY_LOCATION] = f"{entities}/by-ref/{quote_ref(ref)}"
        annotations[MANAGED_BY_ORIGIN_LOCATION] = entities

    def count(self, annotations: dict[str, str]) -> int:
        """Count the service's own annotations."""
        return len(annotations.keys() & self._keys)

    @cached_property
    def _entities(self) -> str:
        return f"{self.word}-api:{self.base_path}/entities"

    @cached_property
    def _entity_set(self) -> str:
        return f"{self.domain}/entity-set"

    @cached_property
    def _keys(self) -> tuple[str, str, str]:
        return (self._entity_set, MANAGED_BY_LOCATION, MANAGED_BY_ORIGIN_LOCATION)


class EntityLimits(NamedTuple):
    """The limits of one entity, each with its own setting `max_entity_…`."""

    relations: int = 10_000
    labels: int = 1_000
    annotations: int = 1_000
    tags: int = 1_000
    links: int = 1_000
    values: int = 25_000

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The limits given by the settings."""
        return cls(*(getattr(settings, _limit_setting(name)) for name in cls._fields))

    def problems(self, entity: Entity, size: int, own_annotations: int = 0) -> Iterator[Problem]:
        """Yield each limit that a valid entity of `size` bytes exceeds, as (path, message).

        `own_annotations` is the number of annotations added by the service, which are not counted.
        """
        if size <= 2 * min(self):
            return  # each counted value takes at least two bytes, with its separator
        for part in _PARTS:
            count = len(entity["metadata"].get(part, ()))
            if part == "annotations":
                count -= own_annotations
            yield from self._problems(part, count, f"metadata.{part}")
        spec = entity.get("spec", {})
        fields = (field.name for field in kinds.RELATIONS.get(entity["kind"].lower(), ()))
        stated = {name: spec[name] for name in fields if spec.get(name) is not None}
        counts = {
            name: len(value) if isinstance(value, list) else 1 for name, value in stated.items()
        }
        if counts:
            longest = max(counts, key=lambda field: counts[field])
            yield from self._problems("relations", sum(counts.values()), f"spec.{longest}")
        yield from self._problems("values", _count_values(entity) - own_annotations, "")

    def _problems(self, name: str, count: int, path: str) -> Iterator[Problem]:
        most = getattr(self, name)
        if count > most:
            default = self._field_defaults[name]
            text = f"{count} {name} are more than one entity may have"
            yield path, f"{text}: {_limit_setting(name)} is {most}, by default {default}"


DEFAULT_LIMITS = EntityLimits()


class AllowedKinds(NamedTuple):
    """The kinds that sets may hold, by set name pattern; without patterns, any kind."""

    kinds: Mapping[str, frozenset[str]] = MappingProxyType({})

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The kinds given by the settings."""
        given = settings.allowed_kinds.items()
        return cls({name: frozenset(kind.lower() for kind in kinds) for name, kinds in given})

    def problem(self, set_name: str | None, kind: object) -> str:
        """The reason why a set may not hold this kind; empty if it may."""
        rows = [row for row in self.kinds if people_trust.matches_set([row], set_name)]
        if not rows or any(str(kind).lower() in self.kinds[row] for row in rows):
            return ""
        place = "outside any set" if set_name is None else f"in the set {set_name}"
        return f"{str(kind)[:80]} isn't allowed {place} by the setting allowed_kinds"


class PushRules(Struct, frozen=True):
    """Settings for checking and annotating pushed entities."""

    annotator: Annotator
    strict_names: bool = False
    max_items: int = MOST_ITEMS
    max_depth: int = 64
    limits: EntityLimits = DEFAULT_LIMITS
    kinds: AllowedKinds = AllowedKinds()

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The rules given by the settings."""
        return cls(
            Annotator(settings.push_word, settings.annotation_domain),
            strict_names=settings.entity_names == "strict",
            max_items=settings.max_set_items,
            max_depth=settings.max_json_depth,
            limits=EntityLimits.of(settings),
            kinds=AllowedKinds.of(settings),
        )


def quote_ref(ref: str) -> str:
    """Percent-encode the reference as one path segment."""
    if _PLAIN_PATH.fullmatch(ref):
        return ref.replace(":", "%3A").replace("/", "%2F")
    return quote(ref, safe="")


def _limit_setting(name: str) -> str:
    return f"max_entity_{name}"


def _count_values(entity: Entity) -> int:
    """Count the scalar values in the JSON: everything that is neither an object nor an array."""
    count = 0
    layer: list[Any] = [entity]
    while layer:
        nested: list[Any] = []
        for item in layer:
            children = item.values() if isinstance(item, dict) else item
            inner = [child for child in children if isinstance(child, dict | list)]
            count += len(item) - len(inner)
            nested += inner
        layer = nested
    return count


class Prepared(msgspec.Struct, frozen=True, gc=False):
    """An entity ready to store: its reference, annotated document and the problems of its spec."""

    ref: str
    document: str
    etag: str
    problems: str | None  # JSON of status.items


class PreparedPush(msgspec.Struct, frozen=True):
    """The entities of one push, in the order of the request."""

    items: list[Prepared]
    warnings: list[Notice]


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a push; items stay raw bytes until each is checked."""

    items: list[msgspec.Raw]


_body = msgspec.json.Decoder(Body)


class _TooManyItemsError(Exception):
    """Raised if a body has more items than allowed."""


class _Count(threading.local):
    """The number of items still allowed in the body that a thread is decoding."""

    left = 0

    def add(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _TooManyItemsError


class _Object(msgspec.Struct, gc=False):
    """An item that is counted, and nothing in it read."""

    def __post_init__(self) -> None:
        _items.add()


class _Objects(msgspec.Struct, forbid_unknown_fields=True):
    items: list[_Object]


class _Value:
    """An item of any type, in the place of its value."""


class _Values(msgspec.Struct, forbid_unknown_fields=True):
    items: list[_Value]


def _counted_type(type_: type, found: object) -> _Value:
    _items.add()
    return _VALUE


_items: Final = _Count()


_VALUE: Final = _Value()


_objects = msgspec.json.Decoder(_Objects)


_values = msgspec.json.Decoder(_Values, dec_hook=_counted_type)


def decode_body(body: bytes | bytearray, rules: PushRules) -> list[msgspec.Raw]:
    """The items of `{"items": [entity]}`; raises InputError for anything else.

    Raises PayloadTooLargeError for more items than a set may hold, before allocating memory.
    """
    try:
        # Items are separated by commas, so few commas need no exact count.
        if body.count(b",") >= rules.max_items:
            _count_error(body, rules.max_items)
        return _body.decode(body).items
    except _TooManyItemsError:
        raise PayloadTooLargeError(
            f"More than {rules.max_items} items{_items_hint(rules)}"
        ) from None
    except msgspec.ValidationError as error:
        raise InputError(
            f'The body has to be {{"items": [entity, ...]}}: {in_words(error)}.'
        ) from None
    except RecursionError:
        raise InputError(f"{validation.too_deep(rules.max_depth)}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"The body is not valid JSON: {error}.") from None


def _count_error(body: bytes | bytearray, most: int) -> None:
    """Raise _TooManyItemsError for more than `most` items, msgspec's errors for an invalid body."""
    try:
        _items.left = most
        _objects.decode(body)
    except msgspec.ValidationError:
        # Items that are not objects are reported separately.
        _items.left = most
        _values.decode(body)


def _items_hint(rules: PushRules) -> str:
    return (
        " are more than a set may hold: "
        f"max_set_items is {rules.max_items}, by default {MOST_ITEMS}."
    )


def make_raw_item(document: str) -> msgspec.Raw:
    """A stored document in the form of a pushed item."""
    return msgspec.Raw(document.encode())


def prepare_unchanged(ref: str, document: str) -> Prepared:
    """A stored entity, prepared for a push that leaves it unchanged."""
    return Prepared(ref, document, _compute_etag(document.encode()), None)


def prepare_body(body: bytes | bytearray, set_name: str, rules: PushRules) -> PreparedPush:
    """The entities to store from a body; raises the errors of `decode_body` and `prepare_items`."""
    return prepare_items(decode_body(body, rules), set_name, rules)


def prepare_items(
    items: Sequence[msgspec.Raw], set_name: str | None, rules: PushRules
) -> PreparedPush:
    """The entities to store.

    Raises InvalidItemsError with every problem of every item, each with its JSON path, and
    PayloadTooLargeError when there are more items than a set may hold.
    """
    check_set_size(len(items), rules)
    preparing = _Preparing(set_name, rules)
    for position, item in enumerate(items):
        preparing.add(position, item)
        if len(preparing.problems) >= _MOST_PROBLEMS:
            break
    return preparing.push()


def prepare_item(item: msgspec.Raw, set_name: str | None, rules: PushRules) -> PreparedPush:
    """Prepare a single entity; the paths of InvalidItemsError are relative to the entity."""
    preparing = _Preparing(set_name, rules)
    preparing.add(None, item)
    return preparing.push()


def check_set_size(count: int, rules: PushRules) -> None:
    """Raise PayloadTooLargeError if `count` exceeds the limit for a set."""
    if count > rules.max_items:
        raise PayloadTooLargeError(f"{count} items{_items_hint(rules)}")


class _Preparing:
    def __init__(self, set_name: str | None, rules: PushRules) -> None:
        self._set_name = set_name
        self._rules = rules
        self._seen: dict[str, int | None] = {}
        self.items: list[Prepared] = []
        self.problems: list[dict[str, str]] = []
        self.warnings: list[Notice] = []

    def push(self) -> PreparedPush:
        if len(self.problems) >= _MOST_PROBLEMS:
            del self.problems[_MOST_PROBLEMS:]
            self.problems.append(problem("items", _MORE_PROBLEMS))
        if self.problems:
            raise InvalidItemsError(self.problems)
        return PreparedPush(self.items, self.warnings)

    def add(self, position: int | None, item: msgspec.Raw) -> None:
        document = bytes(item)
        if json_parts.has_more(document, most := _PARTS_OF_VALUE * self._rules.limits.values):
            self._problem(position, "", _too_many_parts(most, self._rules))
            return
        try:
            entity = msgspec.json.decode(item)
        except RecursionError:
            self._problem(position, "", validation.too_deep(self._rules.max_depth))
            return
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            self._problem(position, "", f"not valid JSON: {error}")
            return
        dropped = validation.drop_read_only(entity) if isinstance(entity, dict) else []
        found = self._found(entity, document)
        for path, message in found:
            self._problem(position, path, message)
        if found:
            return
        metadata = entity["metadata"]
        metadata["name"] = validation.normal_name(metadata["name"])
        namespace = metadata.get("namespace", DEFAULT_NAMESPACE)
        ref = EntityRef.of(entity["kind"], namespace, metadata["name"])
        text = str(ref)
        first = self._seen.setdefault(text, position)
        if first != position:
            self._problem(position, "", f"{text} is also items[{first}]; a set holds it once")
            return
        missing = _spec_problems(entity, ref)
        stored = list(validation.unused_parts(entity, ref.kind, document))
        told = {path for path, _ in stored}
        notices = dropped + [each for each in missing if each[0] not in told] + stored
        for path, message in notices[: _MOST_WARNINGS - len(self.warnings)]:
            said = message.removeprefix(f"{path}: ")
            self.warnings.append(Notice(_problem_path(position, path), said, text))
        self.items.append(self._prepared(entity, text, missing))

    def _found(self, entity: Any, document: bytes) -> list[Problem]:
        """All reasons to reject an entity; size limits are checked only for a well-formed one."""
        rules = self._rules
        found = validation.problems(entity, strict_names=rules.strict_names)
        if found:
            return found
        # Nesting cannot exceed the number of brackets, and few documents have that many.
        brackets = document.count(b"{") + document.count(b"[")
        if brackets > rules.max_depth and validation.deeper_than(entity, rules.max_depth):
            return [("", validation.too_deep(rules.max_depth))]
        if problem := rules.kinds.problem(self._set_name, entity["kind"]):
            return [("kind", problem)]
        own = rules.annotator.count(entity["metadata"].get("annotations", {}))
        return list(rules.limits.problems(entity, len(document), own))

    def _problem(self, position: int | None, path: str, message: str) -> None:
        self.problems.append({"path": _problem_path(position, path), "message": message})

    def _prepared(
        self, entity: dict[str, Any], ref: str, missing: list[tuple[str, str]]
    ) -> Prepared:
        metadata = entity["metadata"]
        annotations = metadata.setdefault("annotations", {})
        self._rules.annotator.annotate(annotations, ref, self._set_name)
        ordered = {key: entity[key] for key in ("apiVersion", "kind", "metadata")}
        if "spec" in entity:
            ordered["spec"] = entity["spec"]
        document = _encode(ordered)
        return Prepared(ref, document.decode(), _compute_etag(document), _status_items(missing))


def _too_many_parts(most: int, rules: PushRules) -> str:
    default = EntityLimits().values
    return (
        f"more than {most:,} values, lists and objects are more than one entity may have: "
        f"{_PARTS_OF_VALUE} times max_entity_values, which is {rules.limits.values}, "
        f"by default {default}"
    )


def _compute_etag(document: bytes) -> str:
    return hashlib.sha1(document, usedforsecurity=False).hexdigest()


def _spec_problems(entity: dict[str, Any], ref: EntityRef) -> list[tuple[str, str]]:
    spec = entity.get("spec", {})
    missing = kinds.spec_problems(entity["apiVersion"], ref.kind, spec)
    _, unreadable = kinds.derive_relations(ref.kind, ref.namespace, spec)
    if not missing and not unreadable:
        return []
    # Report one problem for a field of a wrong type.
    found = dict(unreadable) | dict(missing)
    return [(f"spec.{field}", found[field]) for field in dict(missing) | found]


def _status_items(missing: list[tuple[str, str]]) -> str | None:
    if not missing:
        return None
    return _encode(
        [
            {
                "type": "backstage.io/catalog-processing",
                "level": "warning",
                "message": message,
                "error": {"name": "InputError", "message": message},
            }
            for _, message in missing
        ]
    ).decode()


def _problem_path(position: int | None, path: str) -> str:
    if position is None:
        return path or "$"
    return f"items[{position}].{path}" if path else f"items[{position}]"
