"""Documents of checks, scorecards and exemptions: members and files.

Each reader reports problems by calling `report` with a path. Files name the kind of a document in
place of the member `id` of the service's documents:

    check: has-runbook
    title: There is a runbook
    rule: {source: entity, fact: metadata.annotations.runbook, operator: isKnown}
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Any, Final, Literal, NamedTuple

from factbook import invisible
from factbook.errors import InputError, Problems, not_a_member
from factbook.facts import datasource
from factbook.facts.datasource import Report

# For guards, where null doesn't mean that the member was left out.
EMPTY_GUARD: Final = "is empty; give it a value, or leave it out"
LONGEST_TITLE: Final = 200
LONGEST_TEXT: Final = 10_000
LONGEST_ADDRESS: Final = 2_000
# Includes characters that XML forbids, since badges are SVG.
_CONTROL: Final = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\ud800-\\udfff\\ufffe\\uffff]")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_ADDRESS: Final = re.compile(r"https?://[!-~]+", re.IGNORECASE)


MemberReader = Callable[[object, str, Report], Any]


# As in definitions of data sources.
read_boolean: Final = datasource.take_boolean


read_identifier: Final = datasource.take_identifier


read_entity_reference: Final = datasource.take_reference


class DocumentMember(NamedTuple):
    """A member of a document: its key, the attribute it becomes, and its reader."""

    key: str
    attribute: str
    read: MemberReader
    required: bool = False


def read_document(
    document: object,
    wanted: Sequence[DocumentMember],
    name: str,
    further: Callable[[Mapping[str, Any], Report], None] = lambda values, report: None,
) -> dict[str, Any]:
    """The attributes of a whole document; `further` reports conflicts between members.

    Problems that it reports for members with an earlier problem are dropped. Raises
    InvalidItemsError with every problem.
    """
    problems = Problems()
    values = read_members(document, "", problems.report, wanted, name)
    reported = {one["path"] for one in problems.found}

    def report(path: str, message: str) -> None:
        if path not in reported:
            problems.report(path, message)

    if isinstance(document, dict):
        further(values, report)
    problems.check()
    return values


def read_members(
    value: object, path: str, report: Report, wanted: Sequence[DocumentMember], name: str
) -> dict[str, Any]:
    """The attributes of an object; null means not given."""
    if not isinstance(value, dict):
        report(path, f"a {name} has to be an object")
        return {}
    start = f"{path}." if path else ""
    keys = [member.key for member in wanted]
    for key in value.keys() - set(keys):
        report(f"{start}{key}", not_a_member(key, name, keys))
    values = {}
    for key, attribute, reader, required in wanted:
        if value.get(key) is not None:
            values[attribute] = reader(value[key], f"{start}{key}", report)
        elif required:
            report(f"{start}{key}", "is required")
    return values


def read_array(value: object, path: str, report: Report, most: int) -> list[Any]:
    """A list of at most `most` items; empty if the value isn't a list."""
    if not isinstance(value, list):
        report(path, "has to be a list")
        return []
    if len(value) > most:
        report(path, f"can have {most} items at most")
        return []
    return value


def report_repeated(names: Iterable[str], path: str, report: Report, what: str) -> None:
    """Report each name that a list has more than once."""
    for name, count in Counter(names).items():
        if name and count > 1:
            report(path, f'has the {what} "{name}" {count} times')


def read_title(value: object, path: str, report: Report) -> str:
    """A line of text."""
    if isinstance(value, str) and value.strip() and len(value) <= LONGEST_TITLE:
        if not (invisible.has(value) or _CONTROL.search(value)):
            return value
        report(path, "has an invisible character")
        return ""
    report(path, f"has to be a string of 1 to {LONGEST_TITLE} characters that is not blank")
    return ""


def read_text(value: object, path: str, report: Report) -> str:
    """A text, which may have several lines."""
    if isinstance(value, str) and len(value) <= LONGEST_TEXT and "\0" not in value:
        return value
    report(path, f"has to be a string of {LONGEST_TEXT} characters at most")
    return ""


def read_words(value: object, path: str, report: Report) -> str:
    """A text that is not blank."""
    found = read_text(value, path, report)
    if isinstance(value, str) and not value.strip():
        report(path, "can't be blank")
    return found


def read_number(
    value: object, path: str, report: Report, least: float, most: float, *, above: bool = False
) -> float:
    """A number from `least` to `most`, or above `least`."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        is_enough = value > least if above else value >= least
        if is_enough and value <= most:
            return value
    start = "above" if above else "from"
    report(path, f"has to be a number {start} {least} to {most}")
    return most


def read_whole_number(value: object, path: str, report: Report, least: int, most: int) -> int:
    """A whole number from `least` to `most`."""
    if type(value) is int and least <= value <= most:
        return value
    report(path, f"has to be a whole number from {least} to {most}")
    return least


def read_day(value: object, path: str, report: Report) -> int:
    """The start of a day in UTC, in milliseconds since the epoch."""
    try:
        if isinstance(value, str) and _DAY.fullmatch(value):
            found = datetime.combine(date.fromisoformat(value), time(), UTC)
            if found.timestamp() >= 0:
                return int(found.timestamp()) * 1000
    except ValueError:
        pass
    report(path, "has to be a date from 1970 on, such as 2027-03-31")
    return 0


def read_address(value: object, path: str, report: Report) -> str:
    """A web address."""
    if isinstance(value, str) and len(value) <= LONGEST_ADDRESS and _ADDRESS.fullmatch(value):
        return value
    report(path, "has to be an address that begins with https:// or http://")
    return ""


Kind = Literal["check", "scorecard", "exemption"]


KINDS: Final[tuple[Kind, ...]] = ("check", "scorecard", "exemption")


class DefinitionDocument(NamedTuple):
    """A document from a file in the service's format, and its kind."""

    kind: Kind
    document: dict[str, Any]


def parse_file_document(document: Mapping[str, Any]) -> DefinitionDocument:
    """Parse a document from a file; raises InputError if it has no kind, or several."""
    kinds = [kind for kind in KINDS if kind in document]
    if len(kinds) != 1:
        names = ", ".join(f"`{kind}:`" for kind in KINDS)
        raise InputError(f"has to have exactly one of {names}")
    [kind] = kinds
    rest = {name: value for name, value in document.items() if name != kind}
    if kind != "exemption":
        if "id" in rest:
            raise InputError(f"has `id` beside `{kind}:`, which is the id")
        return DefinitionDocument(kind, {"id": document[kind], **rest})
    if rest or not isinstance(document[kind], dict):
        raise InputError("can have only `exemption:`, with all members below it")
    return DefinitionDocument(kind, dict(document[kind]))


def make_file_document(kind: Kind, document: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a document of the service to the file format."""
    if kind == "exemption":
        return {kind: dict(document)}
    return {
        kind: document["id"],
        **{name: value for name, value in document.items() if name != "id"},
    }
