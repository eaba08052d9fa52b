"""Importer of LDIF files (RFC 2849): the people and groups of a directory.

Records have their lines, are bounded, and sure of their end. Distinguished names (RFC 4514) are
compared without regard to case and blanks.
"""

import asyncio
import base64
import binascii
import codecs
import hashlib
import io
import re
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple

from factbook import text_files
from factbook.catalog.ref import DEFAULT_NAMESPACE
from factbook.catalog.validation import valid_namespace
from factbook.clock import DAY, SECOND
from factbook.importers.importer import (
    NO_NAMESPACE,
    ImporterKind,
    ImporterOptions,
    Show,
)
from factbook.importers.snapshot import (
    ImportedItem,
    ReadingProblem,
    Snapshot,
    SnapshotPart,
    assign_lasting_names,
    make_entity_name,
    select_people,
)
from factbook.outbound.cache import Memory
from factbook.settings.option_tables import about

_LONGEST_NAME: Final = 8_192
_NAME_TYPE: Final = re.compile(r"[A-Za-z0-9.-]{1,128}")
# One character of a value, a pair of hexadecimal digits, an escaped character, or a separator.
_NAME_TOKEN: Final = re.compile(
    r"((?:\\[0-9A-Fa-f]{2})+)|\\([ \"#+,;<=>\\])|([,;+=])|([^\\])", re.DOTALL
)
_SPECIAL: Final = re.compile(r'([,+"\\<>;=])')

LARGEST_LDIF_FILE: Final = 64 * 1024 * 1024
MOST_LINES: Final = 500_000
_MOST_PROBLEMS: Final = 1_000
_MOST_SHOWN: Final = 20

_ATTRIBUTE: Final = re.compile(rb"([A-Za-z0-9.-]{1,128})((?:;[A-Za-z0-9=*-]{1,128}){0,16}):")
_ENTRIES: Final = re.compile(rb"# numEntries: (\d{1,12})\s*")
_RESULT: Final = re.compile(rb"(\d{1,6})(?: |$)")
# What ldapsearch writes first, and after it the number of entries at the end.
_SEARCH: Final = b"# extended LDIF"
_CHANGES: Final = frozenset({"changetype", "control"})
# How ldifde writes an entry.
_ADD: Final = b"add"
# Options that say how a value was sent, and not what it is.
_FORMS: Final = frozenset({"binary"})
# Active Directory sends 1,500 values at once: `member;range=0-1499`, and `range=1500-*` at the end.
_RANGE: Final = "range="
_RANGE_ENDS: Final = re.compile(r"range=(\d{1,9})-(\d{1,9}|\*)")

_MORE_VALUES: Final = (
    "has more values of {} than the export, which has {}; export the other ranges too, or "
    "memberOf of the people"
)
CUT_OFF: Final = "does not end with an empty line, like a file that was cut off: nothing is removed"

_CONTROL: Final = "useraccountcontrol"
_BUILTIN: Final = "iscriticalsystemobject"
# Bits of `userAccountControl` in Active Directory.
_DISABLED: Final = 0x2
_TRUSTS: Final = 0x800 | 0x1000 | 0x2000
# Its times are tenths of a microsecond since 1601; the largest is never.
_TICKS: Final = 10_000
_SINCE_1601: Final = 134_774 * DAY
_NEVER: Final = frozenset({0, 0x7FFFFFFFFFFFFFFF})
# What an account was locked at that is locked for good; after other times it opens again.
_FOR_GOOD: Final = "00000101"
_LONGEST_TIME: Final = len("20261122120000Z")

# Whether a value, in lower case, says at a time that nobody can sign in.
_Test = Callable[[str, int], bool]

_API_VERSION: Final = "backstage.io/v1alpha1"
DN: Final = "backstage.io/ldap-dn"
UUID: Final = "backstage.io/ldap-uuid"
RDN: Final = "backstage.io/ldap-rdn"

_PERSON_CLASSES: Final = frozenset(
    {"inetorgperson", "organizationalperson", "person", "posixaccount", "user"}
)
_GROUP_CLASSES: Final = frozenset(
    {"group", "groupofmembers", "groupofnames", "groupofuniquenames", "posixgroup"}
)
# Active Directory has computers among its users.
_OTHER_CLASSES: Final = frozenset({"computer"})
_MEMBERS: Final = ("member", "uniquemember")

Entity = dict[str, Any]

PEOPLE_PART: Final = "people"
GROUPS_PART: Final = "groups"
_NO_FILE: Final = "cannot be read: it does not exist, or the importing user may not read it"


class LdifImportOptions(ImporterOptions, frozen=True, kw_only=True):
    """A file, and what is imported of it."""

    path: Annotated[str, about("Path of the file on the machine that imports.")]
    namespace: Annotated[str, about("Namespace of the users and groups.")] = DEFAULT_NAMESPACE
    people: Annotated[bool, about("Import people as users.")] = True
    groups: Annotated[bool, about("Import groups.")] = True

    def problems(self) -> Iterable[str]:
        """The mistakes in the table."""
        yield from super().problems()
        if not valid_namespace(self.namespace):
            yield NO_NAMESPACE


class DistinguishedNameError(ValueError):
    """The text is not a distinguished name."""


def normalize_name(text: str) -> str:
    """The form of a name that is the same however it is written; raises DistinguishedNameError."""
    if len(text) > _LONGEST_NAME:
        raise DistinguishedNameError
    return ",".join("+".join(sorted(pairs)) for pairs in _split_name(text))


def find_relative_name(text: str) -> str:
    """The first part of a name as it is written: `uid=alice`."""
    end = 0
    for found in _NAME_TOKEN.finditer(text):
        if found[3] in {",", ";"}:
            break
        end = found.end()
    return text[:end].strip()


def _split_name(text: str) -> Iterator[list[str]]:
    """The parts of a name, each a list of its `type=value`."""
    pairs: list[str] = []
    for pair, separator in _split_pairs(text):
        pairs.append(pair)
        if separator != "+":
            yield pairs
            pairs = []
    if pairs:
        raise DistinguishedNameError


def _split_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Each `type=value` with the separator behind it, which is empty at the end."""
    kind: str | None = None
    value: list[str] = []
    end = 0
    for found in _NAME_TOKEN.finditer(text):
        if found.start() != end:
            break
        end = found.end()
        coded, escaped, separator, plain = found.groups()
        if separator == "=" and kind is None:
            kind, value = "".join(value), []
        elif separator in {",", ";", "+"}:
            yield _format_pair(kind, value), separator
            kind, value = None, []
        elif coded:
            try:
                value.append(bytes.fromhex(coded.replace("\\", "")).decode())
            except UnicodeDecodeError:
                raise DistinguishedNameError from None
        else:
            value.append(escaped or separator or plain)
    if end != len(text):
        raise DistinguishedNameError
    yield _format_pair(kind, value), ""


def _format_pair(kind: str | None, value: list[str]) -> str:
    kind = (kind or "").strip()
    found = " ".join("".join(value).split()).casefold()
    if not _NAME_TYPE.fullmatch(kind) or not found:
        raise DistinguishedNameError
    escaped = _SPECIAL.sub(r"\\\1", found)
    return f"{kind.lower()}={escaped}"


class LdifProblem(NamedTuple):
    """Sentence about a file; `key` is that of the record, if it is known."""

    line: int
    message: str
    key: str = ""


class LdifRecord(NamedTuple):
    """Entry of a directory; `values` are by the name of the attribute in lower case.

    `key` is the same however the name `dn` is written.
    """

    dn: str
    key: str
    line: int
    values: dict[str, list[bytes]]

    def texts(self, name: str) -> list[str]:
        """The values of an attribute that are text; those with an option if there are no others."""
        values = self.values.get(name) or self.values.get(f"{name};") or []
        found = (value.decode("utf-8", "replace").strip() for value in values)
        return [text for text in found if text and "\ufffd" not in text]

    def text(self, *names_: str) -> str:
        """The first value of the first of these attributes that has one, else empty."""
        return next((text for name in names_ for text in self.texts(name)), "")


@dataclass
class LdifContent:
    """Content of a file; it is complete if there can be no other records in it.

    `broken` are the records with a mistake, without what is mistaken. `ranges` are those that a
    record has of an attribute, with their lines, by its key; those of a `cut_off` one are not all.
    """

    records: list[LdifRecord] = field(default_factory=list)
    broken: list[LdifRecord] = field(default_factory=list)
    problems: list[LdifProblem] = field(default_factory=list)
    complete: bool = True
    ranges: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    cut_off: set[str] = field(default_factory=set)

    def fault(self, line: int, message: str, key: str = "") -> None:
        """Add a problem; without the name of its record, any record may be missing."""
        self.complete &= bool(key)
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(LdifProblem(line, message, key))


class _Line(NamedTuple):
    """Line with those that are folded behind it."""

    number: int
    text: bytes


class _BadLineError(Exception):
    """Text: the reason."""


def parse_ldif(data: bytes, wanted: Collection[str]) -> LdifContent:
    """The records of a file, with the attributes in `wanted` alone: it holds passwords, too."""
    content = LdifContent()
    if len(data) > LARGEST_LDIF_FILE:
        content.fault(0, f"is larger than {LARGEST_LDIF_FILE:,} bytes")
        return content
    data = text_files.utf_8(data)
    count = 0
    for block in _split_blocks(data):
        count += _add_block(content, block, wanted)
    _join_ranges(content)
    _check_file_end(content, data, count)
    return content


def _split_blocks(data: bytes) -> Iterator[list[_Line]]:
    """The lines of each record, unfolded, without comments; of a long one, one too many."""
    block: list[_Line] = []
    text = bytearray()
    first = 0

    def ended() -> None:
        if text and not text.startswith(b"#") and len(block) <= MOST_LINES:
            block.append(_Line(first, bytes(text)))
        text.clear()

    for number, raw in enumerate(io.BytesIO(data), 1):
        # Files that were joined have marks inside, too.
        line = raw.removeprefix(codecs.BOM_UTF8).removesuffix(b"\n").removesuffix(b"\r")
        if line.startswith(b" ") and text:
            text.extend(line[1:])
            continue
        ended()
        if line:
            first = number
            text.extend(line)
        elif block:
            yield block
            block = []
    ended()
    if block:
        yield block


def _add_block(content: LdifContent, block: list[_Line], wanted: Collection[str]) -> int:
    """Add a block to the content; 1 if it was an entry."""
    try:
        name, value = _read_attribute(block[0])
        if name == "version" and value != b"1":
            raise _BadLineError("has a version other than 1")
        if name == "version" and len(block) > 1:
            name, value = _read_attribute(block[1])
            block = block[1:]
    except _BadLineError as error:
        content.fault(block[0].number, str(error))
        return 0
    if name == "dn":
        _add_entry(content, block, value, wanted)
        return 1
    if name in {"search", "result"}:
        _check_search_result(content, block)
    elif name not in {"ref", "version"}:
        content.fault(block[0].number, "a record has to begin with dn")
    return 0


def _add_entry(
    content: LdifContent, block: list[_Line], name: bytes, wanted: Collection[str]
) -> None:
    try:
        key = normalize_name(dn := name.decode().strip())
    except (UnicodeDecodeError, DistinguishedNameError):
        content.fault(block[0].number, "dn is not a distinguished name")
        return
    record, mistake = LdifRecord(dn, key, block[0].number, {}), ""
    ranges: dict[str, dict[str, int]] = {}
    if len(block) > MOST_LINES:
        mistake = f"has more than {MOST_LINES:,} lines"
        content.fault(block[0].number, mistake, key)
    for line in block[1:]:
        try:
            attribute, options, raw = _split_line(line)
            if attribute in _CHANGES and (attribute, _decode_ldif_value(raw)) != (
                "changetype",
                _ADD,
            ):
                raise _BadLineError("is a change, but only entries are read")
            if attribute in wanted:
                for option in (found := {one for one in options if one.startswith(_RANGE)}):
                    ranges.setdefault(attribute, {})[option] = line.number
                kept = f"{attribute};" if options - _FORMS - found else attribute
                record.values.setdefault(kept, []).append(_decode_ldif_value(raw))
        except _BadLineError as error:
            if not mistake:
                mistake = str(error)
                content.fault(line.number, mistake, key)
    for attribute, several in ranges.items():
        content.ranges.setdefault(key, {}).setdefault(attribute, {}).update(several)
    (content.broken if mistake else content.records).append(record)


def _join_ranges(content: LdifContent) -> None:
    """Make one of the records that have ranges of one entry; notes the ranges that are missing."""
    first: dict[str, LdifRecord] = {}
    for record in content.records if content.ranges else ():
        values = first.setdefault(record.key, record).values
        if values is not record.values and record.key in content.ranges:
            for name, more in record.values.items():
                known = values.setdefault(name, more)
                if known is not more and name in content.ranges[record.key]:
                    known.extend(more)
    for key, ranges in content.ranges.items():
        for attribute, options in ranges.items():
            if not _are_ranges_complete(options):
                content.cut_off.add(key)
                text = _MORE_VALUES.format(attribute, ", ".join([*options][-_MOST_SHOWN:]))
                content.fault(max(options.values()), text, key)


def _are_ranges_complete(ranges: Iterable[str]) -> bool:
    """True if nothing is missing before, between and behind ranges."""
    end = 0
    found = [match for one in ranges if (match := _RANGE_ENDS.fullmatch(one))]
    for match in sorted(found, key=lambda match: int(match[1])):
        if int(match[1]) > end:
            return False
        if match[2] == "*":
            return True
        end = max(end, int(match[2]) + 1)
    return False


def _read_attribute(line: _Line) -> tuple[str, bytes]:
    """The name and the value of a line."""
    name, _, raw = _split_line(line)
    return name, _decode_ldif_value(raw)


def _split_line(line: _Line) -> tuple[str, frozenset[str], bytes]:
    """The name of a line, its options, such as a language, and what stands for the value."""
    found = _ATTRIBUTE.match(line.text)
    if found is None:
        raise _BadLineError("is not `attribute: value`")
    options = found[2].decode().lower().split(";")[1:]
    return found[1].decode().lower(), frozenset(options), line.text[found.end() :]


def _decode_ldif_value(raw: bytes) -> bytes:
    if raw.startswith(b"<"):
        raise _BadLineError("names a file or an address as its value, which is not read")
    if raw.startswith(b":"):
        try:
            return base64.b64decode(raw[1:].strip(b" "), validate=True)
        except binascii.Error:
            raise _BadLineError("is not base64") from None
    return raw.lstrip(b" ")


def _check_search_result(content: LdifContent, block: list[_Line]) -> None:
    """Note a search that did not end well, such as one with too many entries."""
    for line in block:
        if line.text.startswith(b"result:"):
            code = _RESULT.match(line.text.partition(b":")[2].strip())
            if code is None or int(code[1]):
                content.fault(line.number, "the search did not end with success")


def _check_file_end(content: LdifContent, data: bytes, count: int) -> None:
    """Note a file that was cut off, as far as it shows."""
    told = [
        int(found[1]) for line in data[-4096:].splitlines() if (found := _ENTRIES.fullmatch(line))
    ]
    lines = data.count(b"\n") + 1
    if told and told[-1] != count:
        content.fault(lines, f"has {count:,} of the {told[-1]:,} entries that were found")
        return
    search_ended = bool(told) or not data.startswith(_SEARCH)
    if not told and not (search_ended and data.endswith((b"\n\n", b"\n\r\n"))):
        content.fault(lines, CUT_OFF)


def _is_any_of(*words: str) -> _Test:
    return lambda text, _: text in words


def _begins_with(start: str) -> _Test:
    return lambda text, _: text.startswith(start)


def _are_ticks_past(text: str, now: int) -> bool:
    ticks = _read_number(text)
    return ticks not in _NEVER and ticks // _TICKS - _SINCE_1601 <= now


def _is_time_past(text: str, now: int) -> bool:
    """True for a past time such as `20261122120000Z`, in UTC."""
    form = "%Y%m%d%H%M%Sz" if len(text) == _LONGEST_TIME else "%Y%m%d%H%Mz"
    try:
        return datetime.strptime(text, form).replace(tzinfo=UTC).timestamp() * SECOND <= now
    except ValueError:
        return False


# Attributes of an account that nobody can sign in with, by the directories that have them.
_DISABLING: Final[Mapping[str, _Test]] = MappingProxyType(
    {
        # Active Directory
        _CONTROL: lambda text, _: bool(_read_number(text) & _DISABLED),
        "accountexpires": _are_ticks_past,
        "msds-useraccountdisabled": _is_any_of("true"),
        # 389 Directory Server, FreeIPA, Oracle and Sun
        "nsaccountlock": _is_any_of("true"),
        "nsroledn": _begins_with("cn=nsmanageddisabledrole,"),
        "krbprincipalexpiration": _is_time_past,
        "inetuserstatus": _is_any_of("inactive", "deleted"),
        "orclisenabled": _is_any_of("disabled", "false"),
        "orclactiveenddate": _is_time_past,
        # PingDirectory, OpenDJ and Oracle Unified Directory
        "ds-pwp-account-disabled": _is_any_of("true"),
        "ds-pwp-account-expiration-time": _is_time_past,
        # Password policies of OpenLDAP and others
        "pwdaccountlockedtime": _begins_with(_FOR_GOOD),
        "pwdendtime": _is_time_past,
        # eDirectory, IBM, AIX, Samba and POSIX
        "logindisabled": _is_any_of("true"),
        "loginexpirationtime": _is_time_past,
        "ibm-pwdaccountlocked": _is_any_of("true"),
        "isaccountenabled": _is_any_of("false"),
        "sambaacctflags": lambda text, _: text.startswith("[") and "d" in text,
        "shadowexpire": lambda text, now: 0 < _read_number(text) * DAY <= now,
    }
)


ACCOUNT_ATTRIBUTES: Final = frozenset({*_DISABLING, _BUILTIN})


class LdifAccount(NamedTuple):
    """The account that a record describes, as it is `now`."""

    record: LdifRecord
    now: int

    @property
    def is_service(self) -> bool:
        """True for the accounts that Active Directory brings, and those of trusted domains."""
        is_builtin = self.record.text(_BUILTIN).lower() == "true"
        return is_builtin or bool(_read_number(self.record.text(_CONTROL)) & _TRUSTS)

    @property
    def is_disabled(self) -> bool:
        """True for an account that is switched off, locked for good, or has expired."""
        return any(
            says(text.lower(), self.now)
            for name, says in _DISABLING.items()
            for text in self.record.texts(name)
        )


def _read_number(text: str) -> int:
    """The number in an attribute; 0 for none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


WANTED_ATTRIBUTES: Final = frozenset(
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
        *ACCOUNT_ATTRIBUTES,
    }
)


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
            if is_group_record(record):
                found.groups.setdefault(record.key, record)
            elif is_person_record(record):
                people.append(LdifAccount(record, now))
        for one in select_people(people, found.left_out):
            found.people.setdefault(one.record.key, one.record)
        found._relate()
        return found

    def _relate(self) -> None:
        by_uid = _index_records(self.people, "uid")
        by_number = _index_records(self.groups, "gidnumber")
        for number, several in by_number.items():
            if len(several) > 1:
                first, second = several[:2]
                text = f"gidNumber {number} is both {first} and {second}: it makes nobody a member"
                self.doubts.append((self.groups[second], text))
                several.clear()
        for key, group in self.groups.items():
            members = {_normalize_key(name) for word in _MEMBERS for name in group.texts(word)}
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
                self._add(key, _normalize_key(name))
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
        return {
            key: _find_name(one, "uid", "samaccountname", "cn") for key, one in self.people.items()
        }

    @property
    def names_of_groups(self) -> dict[str, str]:
        """The name that each group's entry gives, by key."""
        return {key: _find_name(one, "cn", "samaccountname") for key, one in self.groups.items()}

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
        given = {DN: record.dn, RDN: find_relative_name(record.dn), UUID: find_unique_id(record)}
        metadata["annotations"] = {key: value for key, value in given.items() if value}
        return {"apiVersion": _API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def is_group_record(record: LdifRecord) -> bool:
    """True for what has members."""
    return bool(_read_classes(record) & _GROUP_CLASSES)


def is_person_record(record: LdifRecord) -> bool:
    """True for a person, and no group or computer."""
    classes = _read_classes(record)
    return bool(classes & _PERSON_CLASSES) and not classes & (_OTHER_CLASSES | _GROUP_CLASSES)


def find_unique_id(record: LdifRecord) -> str:
    """The id that the directory gave an entry for good; empty if the file has none."""
    if given := record.text("entryuuid"):
        return given.lower()
    for value in record.values.get("objectguid", ())[:1]:
        # Active Directory writes its first three parts with the lowest byte first.
        return str(uuid.UUID(bytes_le=value)) if len(value) == 16 else ""
    return ""


def _find_name(record: LdifRecord, *attributes: str) -> str:
    return make_entity_name(record.text(*attributes))


def _index_records(records: Mapping[str, LdifRecord], attribute: str) -> dict[str, list[str]]:
    """The keys of records by each value of an attribute."""
    found: dict[str, list[str]] = {}
    for key, one in records.items():
        for value in dict.fromkeys(one.texts(attribute)):
            found.setdefault(value, []).append(key)
    return found


def _read_classes(record: LdifRecord) -> set[str]:
    return {text.lower() for text in record.texts("objectclass")}


def _normalize_key(name: str) -> str:
    try:
        return normalize_name(name)
    except DistinguishedNameError:
        return ""


async def read_ldif(options: LdifImportOptions, memory: Memory, show: Show, now: int) -> Snapshot:
    """A snapshot of the file: parts for its people and its groups, without accounts that ended."""
    show("Reading the file")
    content = await asyncio.to_thread(_read_content, options)
    return await make_ldif_snapshot(content, options, memory, now)


def _read_content(options: LdifImportOptions) -> LdifContent:
    path = Path(options.path)
    try:
        with path.open("rb") as file:
            # One more is enough to tell that it is too large.
            data = file.read(LARGEST_LDIF_FILE + 1)
    except (OSError, ValueError):
        return LdifContent(complete=False, problems=[LdifProblem(0, _NO_FILE)])
    return parse_ldif(data, WANTED_ATTRIBUTES)


async def make_ldif_snapshot(
    content: LdifContent, options: LdifImportOptions, memory: Memory, now: int
) -> Snapshot:
    """The snapshot of what a file holds.

    Where a group may be missing, nobody's groups are certain.
    """
    directory = await asyncio.to_thread(LdifDirectory.of, content.records, options.namespace, now)
    every = {**directory.people, **directory.groups}
    suffixes = {}
    for key, record in every.items():
        id_ = find_unique_id(record) or hashlib.sha256(record.key.encode()).hexdigest()
        suffixes[key] = id_[-8:]
    for word, names in (
        (PEOPLE_PART, directory.names_of_people),
        (GROUPS_PART, directory.names_of_groups),
    ):
        wanted = {key: name for key, name in names.items() if name}
        key, complete = f"names of {word}", content.complete and not content.broken
        directory.names |= await assign_lasting_names(
            memory, key, wanted, suffixes, complete=complete
        )
    doubts = [LdifProblem(one.line, text, one.key) for one, text in directory.doubts]
    content.problems.extend(doubts)
    return await asyncio.to_thread(make_directory_snapshot, content, options, directory)


def make_directory_snapshot(
    content: LdifContent, options: LdifImportOptions, directory: LdifDirectory
) -> Snapshot:
    """The snapshot of a directory that was read from a file."""
    certain = content.complete and all(map(is_person_record, content.broken))
    certain = certain and not content.cut_off
    both = options.people and options.groups
    making = _FileParts(content, Path(options.path).name, certain=certain, both=both)
    parts = []
    if options.people:
        found = directory.people.values()
        parts.append(making.part(PEOPLE_PART, found, directory.user, is_group_record))
    if options.groups:
        found = directory.groups.values()
        parts.append(making.part(GROUPS_PART, found, directory.group, is_person_record))
    return Snapshot(tuple(parts), directory.left_out if options.people else {})


class _FileParts:
    """Maker of the parts of one file."""

    def __init__(self, content: LdifContent, file: str, *, certain: bool, both: bool) -> None:
        self._content = content
        self._file = file
        self._certain = certain
        self._both = both
        self._unread = frozenset(map(_make_ldif_origin, (record.key for record in content.broken)))

    def part(
        self,
        key: str,
        found: Iterable[LdifRecord],
        made: Callable[[LdifRecord], Entity],
        is_other: Callable[[LdifRecord], bool],
    ) -> SnapshotPart:
        """The part of these records, with the problems that don't show in the other one."""
        items = tuple(self._item(record, made(record)) for record in found)
        known = (*self._content.records, *self._content.broken)
        others = {record.key for record in known if self._both and is_other(record)}
        others -= self._content.cut_off
        told = (one for one in self._content.problems if one.key not in others)
        problems = tuple(
            ReadingProblem(_make_ldif_origin(one.key), one.message, self._file, one.line)
            for one in told
        )
        return SnapshotPart(key, self._content.complete, items, problems, unread=self._unread)

    def _item(self, record: LdifRecord, entity: Entity) -> ImportedItem:
        id_ = find_unique_id(record)
        return ImportedItem(
            entity,
            _make_ldif_origin(record.key),
            f"ldap/{id_}" if id_ else "",
            self._file,
            record.line,
            tentative=not self._certain,
            raw={"dn": record.dn} | {name: record.texts(name) for name in record.values},
        )


def _make_ldif_origin(key: str) -> str:
    return f"ldap {key}" if key else "ldap"


IMPORTER: Final = ImporterKind(
    id="ldif",
    title="LDIF file",
    options=LdifImportOptions,
    makes=("group", "user"),
    read=lambda context, options, show: read_ldif(options, context.memory, show, context.now),
)
