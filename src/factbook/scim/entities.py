"""Entities of users and groups: their names, and what the catalog shows of them."""

import re
from collections.abc import Iterable
from typing import Any, Final

from factbook import invisible
from factbook.catalog.ref import EntityRef
from factbook.importers.names import entity_name
from factbook.importers.snapshot import ImportedItem
from factbook.scim.attributes import Resource, TypeName

ORIGIN: Final = "SCIM"
_VERSION: Final = "backstage.io/v1alpha1"
_SHORT_ID: Final = 8
_LONGEST: Final = 200
_LONGEST_STRICT: Final = 63
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._-]+")
_ENDS: Final = "-._"


def references(type_: TypeName, name: str, id_: str, *, strict: bool) -> list[str]:
    """References that the entity may have, best first.

    A person has the name before the `@`, as at the sign-in, or the whole name where that is another
    person's; a group has its own. A name of which nothing is allowed becomes the id.
    """
    names = [name.partition("@")[0], name] if type_ == "User" else [name]
    allowed = map(_strict_name if strict else entity_name, names)
    valid = [one for one in allowed if one] or [f"{type_}-{id_[:_SHORT_ID]}"]
    return list(dict.fromkeys(str(EntityRef.of(type_, "default", one)) for one in valid))


def user(id_: str, ref: str, resource: Resource, groups: Iterable[str]) -> ImportedItem:
    """The entity of a person, who is a member of the groups with these references."""
    profile = _texts(displayName=_shown_name(resource), email=_email(resource))
    spec = {"profile": profile, "memberOf": sorted(groups)}
    return _item("User", id_, ref, _texts(title=profile.get("displayName")), spec)


def group(id_: str, ref: str, resource: Resource, children: Iterable[str]) -> ImportedItem:
    """The entity of a group, with the references of the groups in it."""
    profile = _texts(displayName=resource["displayName"])
    spec = {"type": "team", "profile": profile, "children": sorted(children)}
    return _item("Group", id_, ref, _texts(title=profile.get("displayName")), spec)


def _strict_name(text: str) -> str:
    """The name where the settings allow nothing but letters, digits and inner `-_.` in one."""
    return _FOREIGN.sub("-", text).strip(_ENDS)[:_LONGEST_STRICT].strip(_ENDS)


def _item(
    type_: TypeName, id_: str, ref: str, metadata: dict[str, str], spec: dict[str, Any]
) -> ImportedItem:
    named = {"name": ref.rpartition("/")[2], **metadata}
    entity = {"apiVersion": _VERSION, "kind": type_, "metadata": named, "spec": spec}
    return ImportedItem(entity, ORIGIN, f"scim/{type_.lower()}/{id_}")


def _shown_name(resource: Resource) -> str | None:
    name = resource.get("name", {})
    parts = (name.get("givenName"), name.get("familyName"))
    return (
        resource.get("displayName")
        or name.get("formatted")
        or " ".join(filter(None, parts))
        or None
    )


def _email(resource: Resource) -> str | None:
    """The primary address, or the first one."""
    emails = sorted(resource.get("emails", ()), key=lambda one: one.get("primary") is not True)
    return next((one["value"] for one in emails if one.get("value")), None)


def _texts(**given: str | None) -> dict[str, str]:
    """Texts that can be seen, without those that are not there."""
    return {name: text for name, value in given.items() if (text := _visible(value or ""))}


def _visible(text: str) -> str:
    shown = "".join(one for one in invisible.without(text) if one.isprintable())
    return shown.strip()[:_LONGEST].strip()
