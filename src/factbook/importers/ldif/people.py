"""Entities made of the records of a directory: users and groups.

What is not known is absent.
"""

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.importers.ldif import accounts
from factbook.importers.ldif.accounts import LdifAccount
from factbook.importers.ldif.distinguished_names import (
    DistinguishedNameError,
    normal,
    relative,
)
from factbook.importers.ldif.records import LdifRecord
from factbook.importers.names import entity_name
from factbook.importers.persons import persons

_VERSION: Final = "backstage.io/v1alpha1"
DN: Final = "backstage.io/ldap-dn"
UUID: Final = "backstage.io/ldap-uuid"
RDN: Final = "backstage.io/ldap-rdn"

_PEOPLE: Final = frozenset(
    {"inetorgperson", "organizationalperson", "person", "posixaccount", "user"}
)
_GROUPS: Final = frozenset(
    {"group", "groupofmembers", "groupofnames", "groupofuniquenames", "posixgroup"}
)
# Active Directory has computers among its users.
_OTHERS: Final = frozenset({"computer"})
_MEMBERS: Final = ("member", "uniquemember")

WANTED: Final = frozenset(
    {
        "cn",
        "description",
        "displayname",
        "entryuuid",
        "gidnumber",
        "mail",
        "memberof",
        "memberuid",
        "objectclass",
        "objectguid",
        "samaccountname",
        "uid",
        *_MEMBERS,
        *accounts.WANTED,
    }
)

Entity = dict[str, Any]


@dataclass
class LdifDirectory:
    """People and groups by the key of their names, and who is in which."""

    namespace: str
    people: dict[str, LdifRecord] = field(default_factory=dict)
    groups: dict[str, LdifRecord] = field(default_factory=dict)
    # Keys of groups by the key of what is in them, and of the groups in each of them.
    within: dict[str, set[str]] = field(default_factory=dict)
    below: dict[str, set[str]] = field(default_factory=dict)
    # Accounts that are no people, by a word for them.
    left_out: Counter[str] = field(default_factory=Counter)
    # Unique names by the keys of people and groups.
    names: dict[str, str] = field(default_factory=dict)
    # Groups, and sentences about a number or member of theirs that may be either of two.
    doubts: list[tuple[LdifRecord, str]] = field(default_factory=list)

    @classmethod
    def of(cls, records: Iterable[LdifRecord], namespace: str, now: int) -> "LdifDirectory":
        """The people and groups among records."""
        found, people = cls(namespace), list[LdifAccount]()
        for record in records:
            if is_group(record):
                found.groups.setdefault(record.key, record)
            elif is_person(record):
                people.append(LdifAccount(record, now))
        for one in persons(people, found.left_out):
            found.people.setdefault(one.record.key, one.record)
        found._relate()
        return found

    def _relate(self) -> None:
        by_uid = _by(self.people, "uid")
        by_number = _by(self.groups, "gidnumber")
        for number, several in by_number.items():
            if len(several) > 1:
                first, second = several[:2]
                text = f"gidNumber {number} is both {first} and {second}: it makes nobody a member"
                self.doubts.append((self.groups[second], text))
                several.clear()
        for key, group in self.groups.items():
            members = {_key(name) for word in _MEMBERS for name in group.texts(word)}
            for uid in group.texts("memberuid"):
                several = by_uid.get(uid, [])
                members.update(several if len(several) == 1 else ())
                if len(several) > 1:
                    first, second = several[:2]
                    text = f"memberUid {uid} is both {first} and {second}: neither is a member"
                    self.doubts.append((group, text))
            for member in members:
                self._add(member, key)
        for key, one in [*self.people.items(), *self.groups.items()]:
            for name in one.texts("memberof"):
                self._add(key, _key(name))
        for key, person in self.people.items():
            for number in person.texts("gidnumber"):
                for group_key in by_number.get(number, []):
                    self._add(key, group_key)

    def _add(self, member: str, group: str) -> None:
        known = member in self.people or member in self.groups
        if known and group in self.groups and member != group:
            self.within.setdefault(member, set()).add(group)
            if member in self.groups:
                self.below.setdefault(group, set()).add(member)

    @property
    def names_of_people(self) -> dict[str, str]:
        """The name that each person's entry gives, by key."""
        return {key: _name(one, "uid", "samaccountname", "cn") for key, one in self.people.items()}

    @property
    def names_of_groups(self) -> dict[str, str]:
        """The name that each group's entry gives, by key."""
        return {key: _name(one, "cn", "samaccountname") for key, one in self.groups.items()}

    def user(self, record: LdifRecord) -> Entity:
        """The user of a person."""
        profile = {"displayName": record.text("displayname", "cn"), "email": record.text("mail")}
        spec = {
            "profile": {key: value for key, value in profile.items() if value},
            "memberOf": self._refs(self.within.get(record.key, ())),
        }
        return self._entity("User", record, spec)

    def group(self, record: LdifRecord) -> Entity:
        """The group of a group; with several above it, none is its parent."""
        spec: Entity = {"type": "team", "children": self._refs(self.below.get(record.key, ()))}
        if shown := record.text("displayname"):
            spec["profile"] = {"displayName": shown}
        above = self._refs(self.within.get(record.key, ()))
        if len(above) == 1:
            spec["parent"] = above[0]
        return self._entity("Group", record, spec)

    def _refs(self, keys: Iterable[str]) -> list[str]:
        found = {self.names.get(key, "") for key in keys}
        return [f"group:{self.namespace}/{name}" for name in sorted(found) if name]

    def _entity(self, kind: str, record: LdifRecord, spec: Entity) -> Entity:
        metadata: Entity = {"name": self.names.get(record.key, "")}
        if self.namespace != DEFAULT_NAMESPACE:
            metadata["namespace"] = self.namespace
        if description := record.text("description"):
            metadata["description"] = description
        given = {DN: record.dn, RDN: relative(record.dn), UUID: unique_id(record)}
        metadata["annotations"] = {key: value for key, value in given.items() if value}
        return {"apiVersion": _VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def is_group(record: LdifRecord) -> bool:
    """True for what has members."""
    return bool(_classes(record) & _GROUPS)


def is_person(record: LdifRecord) -> bool:
    """True for a person, and no group or computer."""
    classes = _classes(record)
    return bool(classes & _PEOPLE) and not classes & (_OTHERS | _GROUPS)


def unique_id(record: LdifRecord) -> str:
    """The id that the directory gave an entry for good; empty if the file has none."""
    if given := record.text("entryuuid"):
        return given.lower()
    for value in record.values.get("objectguid", ())[:1]:
        # Active Directory writes its first three parts with the lowest byte first.
        return str(uuid.UUID(bytes_le=value)) if len(value) == 16 else ""
    return ""


def _name(record: LdifRecord, *attributes: str) -> str:
    return entity_name(record.text(*attributes))


def _by(records: Mapping[str, LdifRecord], attribute: str) -> dict[str, list[str]]:
    """The keys of records by each value of an attribute."""
    found: dict[str, list[str]] = {}
    for key, one in records.items():
        for value in dict.fromkeys(one.texts(attribute)):
            found.setdefault(value, []).append(key)
    return found


def _classes(record: LdifRecord) -> set[str]:
    return {text.lower() for text in record.texts("objectclass")}


def _key(name: str) -> str:
    try:
        return normal(name)
    except DistinguishedNameError:
        return ""
