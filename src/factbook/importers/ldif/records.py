"""Records of an LDIF file (RFC 2849), each with its line; bounded, and sure of its end.

Every failure is a sentence with a line, which never quotes the file. A record that cannot be used
leaves the others alone.
"""

import base64
import binascii
import codecs
import io
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from factbook import text_files
from factbook.importers.ldif import distinguished_names
from factbook.importers.ldif.distinguished_names import DistinguishedNameError

LARGEST: Final = 64 * 1024 * 1024
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
_ADDED: Final = b"add"
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


def parsed(data: bytes, wanted: Collection[str]) -> LdifContent:
    """The records of a file, with the attributes in `wanted` alone: it holds passwords, too."""
    content = LdifContent()
    if len(data) > LARGEST:
        content.fault(0, f"is larger than {LARGEST:,} bytes")
        return content
    data = text_files.utf_8(data)
    count = 0
    for block in _blocks(data):
        count += _add(content, block, wanted)
    _join(content)
    _check_end(content, data, count)
    return content


def _blocks(data: bytes) -> Iterator[list[_Line]]:
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


def _add(content: LdifContent, block: list[_Line], wanted: Collection[str]) -> int:
    """Add a block to the content; 1 if it was an entry."""
    try:
        name, value = _attribute(block[0])
        if name == "version" and value != b"1":
            raise _BadLineError("is of a version that is not 1")
        if name == "version" and len(block) > 1:
            name, value = _attribute(block[1])
            block = block[1:]
    except _BadLineError as error:
        content.fault(block[0].number, str(error))
        return 0
    if name == "dn":
        _add_entry(content, block, value, wanted)
        return 1
    if name in {"search", "result"}:
        _check_result(content, block)
    elif name not in {"ref", "version"}:
        content.fault(block[0].number, "a record has to begin with dn")
    return 0


def _add_entry(
    content: LdifContent, block: list[_Line], name: bytes, wanted: Collection[str]
) -> None:
    try:
        key = distinguished_names.normal(dn := name.decode().strip())
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
            attribute, options, raw = _split(line)
            if attribute in _CHANGES and (attribute, _value(raw)) != ("changetype", _ADDED):
                raise _BadLineError("is a change, where entries are read")
            if attribute in wanted:
                for option in (found := {one for one in options if one.startswith(_RANGE)}):
                    ranges.setdefault(attribute, {})[option] = line.number
                kept = f"{attribute};" if options - _FORMS - found else attribute
                record.values.setdefault(kept, []).append(_value(raw))
        except _BadLineError as error:
            if not mistake:
                mistake = str(error)
                content.fault(line.number, mistake, key)
    for attribute, several in ranges.items():
        content.ranges.setdefault(key, {}).setdefault(attribute, {}).update(several)
    (content.broken if mistake else content.records).append(record)


def _join(content: LdifContent) -> None:
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
            if not _are_all(options):
                content.cut_off.add(key)
                text = _MORE_VALUES.format(attribute, ", ".join([*options][-_MOST_SHOWN:]))
                content.fault(max(options.values()), text, key)


def _are_all(ranges: Iterable[str]) -> bool:
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


def _attribute(line: _Line) -> tuple[str, bytes]:
    """The name and the value of a line."""
    name, _, raw = _split(line)
    return name, _value(raw)


def _split(line: _Line) -> tuple[str, frozenset[str], bytes]:
    """The name of a line, its options, such as a language, and what stands for the value."""
    found = _ATTRIBUTE.match(line.text)
    if found is None:
        raise _BadLineError("is not `attribute: value`")
    options = found[2].decode().lower().split(";")[1:]
    return found[1].decode().lower(), frozenset(options), line.text[found.end() :]


def _value(raw: bytes) -> bytes:
    if raw.startswith(b"<"):
        raise _BadLineError("names a file or an address as its value, which is not read")
    if raw.startswith(b":"):
        try:
            return base64.b64decode(raw[1:].strip(b" "), validate=True)
        except binascii.Error:
            raise _BadLineError("is not base64") from None
    return raw.lstrip(b" ")


def _check_result(content: LdifContent, block: list[_Line]) -> None:
    """Note a search that did not end well, such as one with too many entries."""
    for line in block:
        if line.text.startswith(b"result:"):
            code = _RESULT.match(line.text.partition(b":")[2].strip())
            if code is None or int(code[1]):
                content.fault(line.number, "the search did not end with success")


def _check_end(content: LdifContent, data: bytes, count: int) -> None:
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
