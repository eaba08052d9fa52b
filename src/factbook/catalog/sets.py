"""Conversion of pushed items to entities ready to store; pure functions.

Every item is checked before anything is written, and all problems are reported together.
"""

import hashlib
import threading
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from factbook import json_parts
from factbook.catalog import kinds, validation
from factbook.catalog.push_rules import MOST_ITEMS, EntityLimits, PushRules
from factbook.catalog.ref import DEFAULT_NAMESPACE, EntityRef
from factbook.catalog.validation import Problem
from factbook.errors import InputError, InvalidItemsError, PayloadTooLargeError, in_words, problem
from factbook.schemas.catalog import Notice

_encode = msgspec.json.Encoder().encode

# Of one push that are listed.
_MOST_PROBLEMS: Final = 10_000
_MOST_WARNINGS: Final = 10_000
_MORE_PROBLEMS: Final = f"there are more than {_MOST_PROBLEMS:,} problems; the rest is not listed"
# What an entity may have of values, lists and objects for each value that it may have.
_PARTS_OF_VALUE: Final = 4


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
    """There are more items than may be counted."""


class _Count(threading.local):
    """The items of a body that are still allowed, as a thread reads it."""

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


def _counted(type_: type, found: object) -> _Value:
    _items.add()
    return _VALUE


_items: Final = _Count()
_VALUE: Final = _Value()
_objects = msgspec.json.Decoder(_Objects)
_values = msgspec.json.Decoder(_Values, dec_hook=_counted)


def decode_body(body: bytes | bytearray, rules: PushRules) -> list[msgspec.Raw]:
    """The items of `{"items": [entity]}`; raises InputError for anything else.

    Raises PayloadTooLargeError for more items than a set may hold, before memory is taken for them.
    """
    try:
        # Between two items is a comma.
        if body.count(b",") >= rules.max_items:
            _count(body, rules.max_items)
        return _body.decode(body).items
    except _TooManyItemsError:
        raise PayloadTooLargeError(f"More than {rules.max_items} items{_limit(rules)}") from None
    except msgspec.ValidationError as error:
        raise InputError(
            f'The body has to be {{"items": [entity, ...]}}: {in_words(error)}.'
        ) from None
    except RecursionError:
        raise InputError(f"{validation.too_deep(rules.max_depth)}.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"The body is not valid JSON: {error}.") from None


def _count(body: bytes | bytearray, most: int) -> None:
    """Raise _TooManyItemsError for more than `most` items; what msgspec does for a wrong body."""
    try:
        _items.left = most
        _objects.decode(body)
    except msgspec.ValidationError:
        # Items that are no objects are problems of their own.
        _items.left = most
        _values.decode(body)


def _limit(rules: PushRules) -> str:
    return (
        " are more than a set may hold: "
        f"max_set_items is {rules.max_items}, by default {MOST_ITEMS}."
    )


def raw(document: str) -> msgspec.Raw:
    """A stored document in the form of a pushed item."""
    return msgspec.Raw(document.encode())


def unchanged(ref: str, document: str) -> Prepared:
    """A stored entity as a push that leaves it as it is has it."""
    return Prepared(ref, document, _etag(document.encode()), None)


def prepare_body(body: bytes | bytearray, set_name: str, rules: PushRules) -> PreparedPush:
    """The entities to store of a body; raises what `decode_body` and `prepare` do."""
    return prepare(decode_body(body, rules), set_name, rules)


def prepare(items: Sequence[msgspec.Raw], set_name: str | None, rules: PushRules) -> PreparedPush:
    """The entities to store.

    Raises InvalidItemsError with every problem of every item, each with its JSON path, and
    PayloadTooLargeError when there are more items than a set may hold.
    """
    check_size(len(items), rules)
    preparing = _Preparing(set_name, rules)
    for position, item in enumerate(items):
        preparing.add(position, item)
        if len(preparing.problems) >= _MOST_PROBLEMS:
            break
    return preparing.push()


def prepare_one(item: msgspec.Raw, set_name: str | None, rules: PushRules) -> PreparedPush:
    """Prepare a single entity; the paths of InvalidItemsError are relative to the entity."""
    preparing = _Preparing(set_name, rules)
    preparing.add(None, item)
    return preparing.push()


def check_size(count: int, rules: PushRules) -> None:
    """Raise PayloadTooLargeError if `count` exceeds the limit for a set."""
    if count > rules.max_items:
        raise PayloadTooLargeError(f"{count} items{_limit(rules)}")


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
        ref = _identify(entity)
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
            self.warnings.append(Notice(_path(position, path), said, text))
        self.items.append(self._prepared(entity, text, missing))

    def _found(self, entity: Any, document: bytes) -> list[Problem]:
        """All reasons to reject an entity; size limits are checked only for a well-formed one."""
        rules = self._rules
        found = validation.problems(entity, strict_names=rules.strict_names)
        if found:
            return found
        # Nothing is nested deeper than it has brackets, and few documents have that many.
        brackets = document.count(b"{") + document.count(b"[")
        if brackets > rules.max_depth and validation.deeper_than(entity, rules.max_depth):
            return [("", validation.too_deep(rules.max_depth))]
        if problem := rules.kinds.problem(self._set_name, entity["kind"]):
            return [("kind", problem)]
        own = rules.annotator.count(entity["metadata"].get("annotations", {}))
        return list(rules.limits.problems(entity, len(document), own))

    def _problem(self, position: int | None, path: str, message: str) -> None:
        self.problems.append({"path": _path(position, path), "message": message})

    def _prepared(
        self, entity: dict[str, Any], ref: str, missing: list[tuple[str, str]]
    ) -> Prepared:
        metadata = entity["metadata"]
        annotations = metadata.setdefault("annotations", {})
        self._rules.annotator.annotate(annotations, ref, self._set_name)
        document = _encode(_in_order(entity))
        return Prepared(ref, document.decode(), _etag(document), _status_items(missing))


def _too_many_parts(most: int, rules: PushRules) -> str:
    default = EntityLimits().values
    return (
        f"more than {most:,} values, lists and objects are more than one entity may have: "
        f"{_PARTS_OF_VALUE} times max_entity_values, which is {rules.limits.values}, "
        f"by default {default}"
    )


def _etag(document: bytes) -> str:
    return hashlib.sha1(document, usedforsecurity=False).hexdigest()


def _identify(entity: dict[str, Any]) -> EntityRef:
    metadata = entity["metadata"]
    metadata["name"] = validation.normal_name(metadata["name"])
    namespace = metadata.get("namespace", DEFAULT_NAMESPACE)
    return EntityRef.of(entity["kind"], namespace, metadata["name"])


def _spec_problems(entity: dict[str, Any], ref: EntityRef) -> list[tuple[str, str]]:
    spec = entity.get("spec", {})
    missing = kinds.spec_problems(entity["apiVersion"], ref.kind, spec)
    _, unreadable = kinds.derive_relations(ref.kind, ref.namespace, spec)
    if not missing and not unreadable:
        return []
    # A field of a wrong type has one problem.
    found = dict(unreadable) | dict(missing)
    return [(f"spec.{field}", found[field]) for field in dict(missing) | found]


def _in_order(entity: dict[str, Any]) -> dict[str, Any]:
    """Put the root keys in a fixed order: reads rely on `metadata` following two plain strings."""
    ordered = {key: entity[key] for key in ("apiVersion", "kind", "metadata")}
    if "spec" in entity:
        ordered["spec"] = entity["spec"]
    return ordered


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


def _path(position: int | None, path: str) -> str:
    if position is None:
        return path or "$"
    return f"items[{position}].{path}" if path else f"items[{position}]"
