"""Filters of lists as conditions on what is stored."""

from typing import Any, Final

from factbook.scim import attributes, filters
from factbook.scim.attributes import TypeName
from factbook.scim.filters import Equals, ScimFilter
from factbook.scim.store import RowCondition, key

EVERYTHING: Final = RowCondition("1 = 1")
_NOTHING: Final = RowCondition("1 = 0")
_IN_GROUP: Final = "id IN (SELECT group_id FROM scim_members WHERE member_id = ?)"
_HAS_GROUP: Final = "id IN (SELECT member_id FROM scim_members WHERE group_id = ?)"
_OFFERED: Final = {
    "User": "userName, externalId, displayName, id, active, groups.value",
    "Group": "displayName, externalId, id, members.value",
}


def condition(type_: TypeName, filter_: ScimFilter) -> RowCondition:
    """The condition; raises InputError for an attribute by which nothing can be found."""
    if isinstance(filter_, Equals):
        return _equals(type_, filter_)
    word = " AND " if isinstance(filter_, filters.Both) else " OR "
    found = [condition(type_, each) for each in filter_.conditions]
    text = word.join(f"({one.sql})" for one in found)
    return RowCondition(text, tuple(value for one in found for value in one.parameters))


def _equals(type_: TypeName, filter_: Equals) -> RowCondition:
    name, value = attributes.plain(type_, filter_.attribute).lower(), filter_.value
    if name == "active" and type_ == "User":
        return RowCondition("active = ?", (int(str(value).lower() == "true"),))
    columns: dict[str, tuple[str, Any]] = {
        "id": ("id = ?", value),
        "externalid": ("external_id = ?", value),
        "displayname": ("display_key = ?", key(value)),
    }
    if type_ == "User":
        columns |= {
            "username": ("name_key = ?", key(value)),
            "groups": (_HAS_GROUP, value),
            "groups.value": (_HAS_GROUP, value),
        }
    else:
        columns |= {"members": (_IN_GROUP, value), "members.value": (_IN_GROUP, value)}
    if name not in columns:
        named = f"{type_}s are found by {_OFFERED[type_]}; {filter_.attribute[:80]} is not offered."
        raise filters.refused(named)
    sql, wanted = columns[name]
    # An empty text stands for none in a column.
    return RowCondition(sql, (wanted,)) if isinstance(wanted, str) and wanted else _NOTHING
