"""Changes of a resource by PATCH (RFC 7644, 3.5.2), in the forms sent by Entra and Okta.

Pure functions that return the changed resource.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

from factbook.errors import InputError
from factbook.scim import protocol
from factbook.scim.protocol import (
    Attribute,
    Equals,
    Resource,
    ScimFilter,
    TypeName,
    convert_value,
    drop_same_values,
)

_MOST_OPERATIONS: Final = 1_000
# Changes that check every value of an attribute, once per comparison.
_MOST_CHOICES: Final = 100
_MOST_COMPARISONS: Final = 10
# Longest path: the longest text value, and a few comparisons.
_LONGEST_PATH: Final = 500
_OPERATIONS: Final = ("add", "replace", "remove")
_PATH: Final = re.compile(r"(?P<name>[^\[\]]+?)(?:\[(?P<filter>.*)\])?(?:\.(?P<part>[\w$]+))?")


class PatchOperation(NamedTuple):
    """A change; `is_named` is false if the path was derived from the value."""

    op: str
    path: str
    value: Any
    is_named: bool = True


DEACTIVATION: Final = (PatchOperation("replace", "active", value=False),)


class PatchTarget(NamedTuple):
    """Target of a path: an attribute, its `part`, and only values for which `where` holds."""

    attribute: Attribute
    part: Attribute | None
    where: ScimFilter | None

    @property
    def is_choice(self) -> bool:
        """True if every value of the attribute must be checked against the path."""
        return self.attribute.many and (self.part is not None or self.where is not None)


def parse_operations(body: object) -> list[PatchOperation]:
    """The changes in the body of a PATCH; raises InputError for another form."""
    given = _find_member(body, "operations")
    if not isinstance(given, list) or not given:
        raise InputError("Operations has to be a list of changes.", scimType="invalidSyntax")
    found: list[PatchOperation] = []
    for one in given:
        if len(given) > _MOST_OPERATIONS or len(found) >= _MOST_OPERATIONS:
            raise InputError(
                f"A call takes {_MOST_OPERATIONS} changes at most.", scimType="tooMany"
            )
        found += _split_by_attribute(_parse_operation(one))
    return found


def ends_access(type_: TypeName, body: object) -> bool:
    """True if any change in the body of a PATCH ends a person's access."""
    given = _find_member(body, "operations") if isinstance(body, dict) else None
    said: dict[str, Any] = {}
    for one in given[:_MOST_OPERATIONS] if isinstance(given, list) else ():
        with suppress(InputError):
            changes = _split_by_attribute(_parse_operation(one))
            said.update({each.path: each.value for each in changes if each.op != "remove"})
    return protocol.is_inactive_user(type_, said)


def apply_operations(
    type_: TypeName, resource: Resource, changes: Sequence[PatchOperation]
) -> Resource:
    """The resource after these changes; raises InputError for an impossible change."""
    patched = dict(resource)
    members = _index_members(patched.pop("members", ()))
    choices = 0
    for change in changes:
        target = _parse_target(type_, change.path, is_named=change.is_named)
        if target is None:
            continue
        if target.attribute.name == "members":
            _change_members(members, change, target)
            continue
        choices += target.is_choice
        if choices > _MOST_CHOICES:
            raise InputError(
                f"A call chooses values {_MOST_CHOICES} times at most.", scimType="tooMany"
            )
        _apply_operation(patched, change, target)
    if members:
        patched["members"] = list(members.values())
    return protocol.check_resource(type_, patched)


def _index_members(members: Iterable[Resource]) -> dict[str, Resource]:
    return {str(one.get("value", "")): one for one in members}


def _change_members(
    members: dict[str, Resource], change: PatchOperation, target: PatchTarget
) -> None:
    """Change members by id, as searching the members of a large group is slow."""
    if target.part is not None:
        raise InputError("A member cannot be changed.", scimType="mutability")
    given = change.value
    where = target.where
    if where is not None:
        if not isinstance(where, Equals) or where.attribute.lower() != "value":
            raise protocol.make_filter_error('Members are chosen by members[value eq "…"].')
        given = [{"value": str(where.value)}]
        if change.op != "remove":
            raise InputError("members[…] can only be removed.", scimType="invalidPath")
    named = _index_members(convert_value(target.attribute, given) or ())
    if change.op == "remove" and given is not None:
        # Entra names the members to remove in the value.
        for id_ in named:
            members.pop(id_, None)
        return
    if change.op != "add":
        members.clear()
    members.update(named)


def _find_member(body: object, name: str) -> object:
    """A member of an object, by case-insensitive name."""
    if not isinstance(body, dict):
        raise InputError("The body has to be an object.", scimType="invalidSyntax")
    return next((value for key, value in body.items() if key.lower() == name), None)


def _parse_operation(given: object) -> PatchOperation:
    op, path = _find_member(given, "op"), _find_member(given, "path")
    if not isinstance(op, str) or op.lower() not in _OPERATIONS:
        raise InputError("op has to be add, replace or remove.", scimType="invalidSyntax")
    if path is not None and not isinstance(path, str):
        raise InputError("path has to be a text.", scimType="invalidPath")
    return PatchOperation(op.lower(), (path or "").strip(), _find_member(given, "value"))


def _split_by_attribute(change: PatchOperation) -> list[PatchOperation]:
    """The change, or one for each attribute that its value names."""
    if change.path:
        return [change]
    if change.op == "remove":
        raise InputError("A removal needs a path.", scimType="noTarget")
    value = change.value
    if not isinstance(value, dict):
        raise InputError("Without a path the value has to be an object.", scimType="invalidValue")
    if len(value) > _MOST_OPERATIONS:
        raise InputError(
            f"A value names {_MOST_OPERATIONS} attributes at most.", scimType="tooMany"
        )
    # A complex extension is one member; none of its attributes are kept.
    return [PatchOperation(change.op, name, one, is_named=False) for name, one in value.items()]


def _parse_target(type_: TypeName, path: str, *, is_named: bool) -> PatchTarget | None:
    """The target of a path; None if it is not kept; raises InputError for an invalid path.

    Unchangeable attributes in a value without a path are ignored.
    """
    name = protocol.strip_schema(type_, path)
    if protocol.is_ignored_attribute(name):
        return None
    match = _PATH.fullmatch(name)
    if match is None or len(path) > _LONGEST_PATH:
        raise InputError(f"{path[:80]} is no path.", scimType="invalidPath")
    first, part_name = match["name"], match["part"]
    if part_name is None and match["filter"] is None:
        first, _, part_name = first.partition(".")
    if protocol.is_ignored_attribute(first):
        return None
    attribute = protocol.find_attribute(type_, first)
    part = attribute.part(part_name) if attribute and part_name else None
    if attribute is None or (part_name and part is None):
        if first in protocol.READ_ONLY:
            _refuse_change(first, is_named=is_named)
        return None
    if "readOnly" in (attribute.mutability, part and part.mutability):
        _refuse_change(path, is_named=is_named)
        return None
    where = protocol.parse_filter(match["filter"]) if match["filter"] is not None else None
    if where is not None and not attribute.many:
        raise InputError(f"{first} has one value only.", scimType="invalidPath")
    if where is not None and protocol.count_comparisons(where) > _MOST_COMPARISONS:
        raise protocol.make_filter_error(f"A path has {_MOST_COMPARISONS} comparisons at most.")
    return PatchTarget(attribute, part, where)


def _refuse_change(name: str, *, is_named: bool) -> None:
    """Raise InputError for an unchangeable attribute, if the path names it."""
    if is_named:
        raise InputError(f"{name[:80]} cannot be changed.", scimType="mutability")


def _apply_operation(resource: Resource, change: PatchOperation, target: PatchTarget) -> None:
    attribute = target.attribute
    if change.op == "remove":
        kept = _remove_value(resource.get(attribute.name), target, change.value)
    elif attribute.many:
        kept = _merge_values(resource.get(attribute.name, []), change, target)
    elif attribute.kind == "complex":
        kept = _merge_value(resource.get(attribute.name), change.value, target)
    else:
        kept = convert_value(attribute, change.value)
    if isinstance(kept, list):
        protocol.check_value_count(attribute, kept)
    if kept is None or kept in ({}, []):
        resource.pop(attribute.name, None)
    else:
        resource[attribute.name] = kept


def _merge_value(before: Resource | None, value: object, target: PatchTarget) -> Resource:
    """A complex value merged with the new parts; empty parts are left out."""
    given = {target.part.name: value} if target.part else value
    new = convert_value(target.attribute._replace(many=False), given) or {}
    merged = {**(before or {}), **new}
    if target.part and target.part.name not in new:
        merged.pop(target.part.name, None)
    return merged


def _merge_values(
    before: list[Resource], change: PatchOperation, target: PatchTarget
) -> list[Resource]:
    """The values of an attribute after an addition or a replacement."""
    if target.part is None and target.where is None:
        new = convert_value(target.attribute, change.value) or []
        return drop_same_values(target.attribute, [*before, *new]) if change.op == "add" else new
    is_meant = _make_matcher(target)
    after = [_merge_value(one, change.value, target) if is_meant(one) else one for one in before]
    if not any(map(is_meant, before)):
        # Entra sets emails[type eq "work"].value before that address exists.
        given = dict(protocol.list_compared_values(target.where)) if target.where else {}
        start = convert_value(target.attribute._replace(many=False), given)
        after.append(_merge_value(start, change.value, target))
    return drop_same_values(target.attribute, [one for one in after if one])


def _remove_value(before: Any, target: PatchTarget, value: object) -> Any:
    """The value of an attribute after a removal; None if nothing is left."""
    attribute = target.attribute
    if not isinstance(before, list):
        if target.part is None or before is None:
            return None
        return {name: one for name, one in before.items() if name != target.part.name}
    is_meant = _make_matcher(target)
    if target.part is not None:
        name = target.part.name
        cut = [{k: v for k, v in one.items() if k != name} for one in before if is_meant(one)]
        return [*(one for one in before if not is_meant(one)), *filter(None, cut)]
    if target.where is None and value is not None:
        going = {one.get("value") for one in convert_value(attribute, value) or []}
        return [one for one in before if one.get("value") not in going]
    return [one for one in before if not is_meant(one)]


def _make_matcher(target: PatchTarget) -> Callable[[Resource], bool]:
    """A predicate for the values that a change targets."""
    where, attribute = target.where, target.attribute
    if where is None:
        return lambda value: True

    def is_meant(value: Resource) -> bool:
        return protocol.match_filter(
            where, lambda name, wanted: _is_equal_value(attribute, value, name, wanted)
        )

    return is_meant


def _is_equal_value(attribute: Attribute, value: Resource, name: str, wanted: object) -> bool:
    part = attribute.part(name)
    if part is None:
        raise protocol.make_filter_error(f"{attribute.name} has no {name[:40]}.")
    found = value.get(part.name)
    if part.kind == "boolean" or part.exact or not isinstance(found, str):
        return (
            str(found).lower() == str(wanted).lower()
            if part.kind == "boolean"
            else (found == wanted)
        )
    return isinstance(wanted, str) and found.lower() == wanted.lower()
