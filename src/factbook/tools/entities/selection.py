"""Selection of entities: the arguments of a search as a condition of the catalog."""

from collections.abc import Mapping
from typing import Any, Final

from factbook.catalog import kinds, predicates
from factbook.catalog import ref as refs
from factbook.catalog.store import (
    affiliation,
    browse,
    by_ref,
    filter_choices,
    frequent_targets,
    selectivity,
    trigrams,
)
from factbook.catalog.store.broken_references import Dangling
from factbook.catalog.store.conditions import AllOf, Condition, Contains, Has, Related
from factbook.errors import InputError, ToolError, suggestion
from factbook.storage import Database

# No value that the index has is longer.
_LONGEST: Final = 300
_MISSING: Final = 1_000
_SUGGESTED: Final = 5
# Values among which a refusal looks for those that are alike.
_COMPARED: Final = 1_000
_KEYS: Final = {
    "kind": "kind",
    "namespace": "metadata.namespace",
    "type": "spec.type",
    "lifecycle": "spec.lifecycle",
    "tag": "metadata.tags",
}
_BY_PATH: Final = {path: name for name, path in _KEYS.items()}
# Fields that every entity has, and that the index of fields lacks.
_UNLISTED: Final = ("kind", "metadata.name", "metadata.namespace", "metadata.uid")


async def condition(database: Database, given: dict[str, Any]) -> Condition:
    """The condition for arguments by name, those left out being left out.

    Raises ToolError for an owner or system that nobody names.
    """
    for name, value in given.items():
        if isinstance(value, str) and len(value) > _LONGEST:
            raise ToolError(f"{name} may have {_LONGEST} characters at most.")
    related = await _related(database, given)
    plain = [
        Has(key, [given[name].strip().lower()]) for name, key in _KEYS.items() if name in given
    ]
    parts: list[Condition] = [*plain]
    if any(isinstance(one, Related) for one in related):
        parts = [await selectivity.probed(database, one) for one in plain]
    if "label" in given:
        parts.append(_label(given["label"]))
    if "query" in given:
        parts.append(_query(given["query"]))
    parts += related
    if text := given.get("text", "").strip():
        parts.append(Contains(browse.TEXT_FIELDS, text.lower()))
    return await trigrams.looked_up(database, AllOf(parts))


async def refuse_unknown(database: Database, given: Mapping[str, Any]) -> None:
    """Raise ToolError if no entity has a kind, namespace, type, lifecycle, tag, label or path.

    To be called where nothing was found: an agent that misspelled one would say that there is none.
    """
    for name, key in _KEYS.items():
        if name in given:
            await _refuse_value(database, name, key, given[name])
    if "query" in given:
        for path, value in predicates.fields(given["query"]):
            await refuse_path(database, path)
            values = value.get("$in", ()) if isinstance(value, dict) else [value]
            if len(values) == 1 and isinstance(values[0], str) and path in _BY_PATH:
                await _refuse_value(database, _BY_PATH[path], path, values[0])
    if "label" not in given:
        return
    label, equals, value = given["label"].strip().lower().partition("=")
    names = await filter_choices.label_names(database, _COMPARED)
    if label.strip() not in names:
        raise _unknown("label", label.strip(), names)
    if equals:
        key = f"metadata.labels.{label.strip()}"
        await _refuse_value(database, f"label {label.strip()} with the value", key, value)


async def refuse_path(database: Database, path: str) -> None:
    """Raise ToolError if no entity has a field at a path, or below it."""
    if path in _UNLISTED or path.startswith("relations"):
        return
    if not await filter_choices.keys_from(database, path, 1):
        known = await filter_choices.keys_from(database, "", _COMPARED)
        raise _unknown("field", path, known)


async def _refuse_value(database: Database, name: str, key: str, given: str) -> None:
    value = given.strip().lower()
    if key == "kind" and value in map(str.lower, kinds.KINDS):
        return
    if key == "metadata.namespace":
        found = await filter_choices.namespaces(database, _COMPARED)
        values = [choice.value for choice in found]
    else:
        if value in await filter_choices.values_from(database, key, value, 1):
            return
        values = await filter_choices.values_from(database, key, "", _COMPARED)
    if value not in values:
        raise _unknown(name, value, values)


def _unknown(name: str, value: str, there: list[str]) -> ToolError:
    known = suggestion(value, there) or " No entity has any."
    return ToolError(f"No entity has the {name} {value}.{known}")


async def _related(database: Database, given: dict[str, Any]) -> list[Condition]:
    """The conditions on owners and systems."""
    parts: list[Condition] = []
    if "owner" in given:
        owners = await owners_named(database, given["owner"])
        parts.append(await frequent_targets.related(database, "ownedBy", owners))
    if "ownership" in given:
        parts.append(await _ownership(database, given["ownership"]))
    if "dangling" in given:
        parts.append(Dangling(given["dangling"]))
    if "system" in given:
        systems = [await _system(database, given["system"])]
        parts.append(await frequent_targets.related(database, "partOf", systems))
    return parts


async def owners_named(database: Database, text: str) -> list[str]:
    """The owner, and of a group all groups below it; raises ToolError if nobody is called so."""
    ref = refs.canonical(text, kind="group")
    found = await affiliation.groups_below(database, ref) if ref.startswith("group:") else [ref]
    if len(found) > 1 or await _is_there(database, "ownedBy", ref):
        return found
    person = refs.canonical(text, kind="user")
    if person != ref and await _is_there(database, "ownedBy", person):
        return [person]
    name = ref.rpartition("/")[2]
    close = await filter_choices.owners_named(database, name, _SUGGESTED)
    close = close or await by_ref.similar(database, ref.partition(":")[0], name, _SUGGESTED)
    there = [one.value for one in await filter_choices.owners(database, _COMPARED)]
    known = suggestion(name, there, close) or " No entity has an owner."
    raise ToolError(f"No entity is owned by {ref}, which is not in the catalog.{known}")


async def _ownership(database: Database, ownership: str) -> Condition:
    if ownership == "none":
        return browse.LacksOwner()
    missing = await filter_choices.missing_owners(database, _MISSING)
    return await frequent_targets.related(database, "ownedBy", missing)


async def _system(database: Database, text: str) -> str:
    ref = refs.canonical(text, kind="system")
    if await _is_there(database, "partOf", ref):
        return ref
    name = ref.rpartition("/")[2]
    close = await filter_choices.systems_named(database, name, _SUGGESTED)
    close = close or await by_ref.similar(database, "system", name, _SUGGESTED)
    there = await filter_choices.systems_named(database, "", _COMPARED)
    known = suggestion(name, there, close) or " There are none."
    raise ToolError(f"There is no system {ref}.{known}")


async def _is_there(database: Database, type_: str, ref: str) -> bool:
    if await filter_choices.is_target(database, type_, ref):
        return True
    return await by_ref.complying(database, ref, owners=False) is not None


def _label(text: str) -> Condition:
    name, equals, value = text.partition("=")
    if not name.strip():
        raise ToolError("label has to be a name, or name=value, such as tier=1.")
    key = f"metadata.labels.{name.strip().lower()}"
    return Has(key, [value.strip().lower()] if equals else None)


def _query(query: object) -> Condition:
    try:
        return predicates.parse(query)
    except InputError as error:
        raise ToolError(f"query: {error.message}") from None
