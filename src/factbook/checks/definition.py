"""Definitions of checks: parsing of the document that defines one."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from typing import Any, Final, NamedTuple

from msgspec import Struct

from factbook.catalog import ref
from factbook.checks import check_test, condition, templates
from factbook.checks.check_test import CheckTest
from factbook.checks.condition import Rule
from factbook.checks.state import FAIL, PASS, UNKNOWN
from factbook.errors import InputError, InvalidItemsError
from factbook.facts import entity_filter
from factbook.facts.entity_filter import EntityFilter

Report = Callable[[str, str], None]

SEVERITIES: Final = ("required", "advisory")
MOST_LABELS: Final = 50
MOST_TESTS: Final = 100

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_LONGEST: Final = 5_000
_ON_UNKNOWN: Final = {"unknown": UNKNOWN, "fail": FAIL, "pass": PASS}


class Messages(Struct, frozen=True):
    """What is said with a result; each is a template."""

    passing: str | None = None
    failing: str | None = None
    unknown: str | None = None


class Fix(Struct, frozen=True):
    """The way to make the check pass; both are templates."""

    link: str | None = None
    instructions: str | None = None


class Check(Struct, frozen=True, kw_only=True):
    """A rule over the facts of entities.

    `applies_to` selects the entities by what the catalog says, `applicable_when` by their facts.
    `on_unknown` is the state of an unknown result. Results before `effective_from` do not count.
    """

    id: str
    title: str
    rule: Rule
    description: str | None = None
    owner: str | None = None
    applies_to: EntityFilter | None = None
    applicable_when: Rule | None = None
    on_unknown: int = UNKNOWN
    messages: Messages = Messages()
    fix: Fix = Fix()
    severity: str = "required"
    effective_from: date | None = None
    labels: tuple[str, ...] = ()
    tests: tuple[CheckTest, ...] = ()

    def templates(self) -> Iterator[tuple[str, str]]:
        """The texts with values of an entity, with the path where each stands."""
        texts = {
            "messages.pass": self.messages.passing,
            "messages.fail": self.messages.failing,
            "messages.unknown": self.messages.unknown,
            "fix.link": self.fix.link,
            "fix.instructions": self.fix.instructions,
        }
        for path, text in texts.items():
            if text is not None:
                yield path, text


def parse(document: object) -> Check:
    """Parse a document; raises InvalidItemsError with every mistake and its path."""
    problems: list[dict[str, str]] = []

    def report(path: str, message: str) -> None:
        problems.append({"path": path, "message": message})

    if not isinstance(document, dict):
        raise InvalidItemsError([{"path": "", "message": "a check has to be an object"}])
    values = _read_fields(document, report)
    if problems:
        raise InvalidItemsError(problems)
    return Check(**values)


def _read_fields(given: dict[str, Any], report: Report) -> dict[str, Any]:
    known = {field.key for field in _FIELDS}
    for key in given:
        if key not in known:
            report(key, "is not a field of a check")
    values = {}
    for key, attribute, read, required in _FIELDS:
        if given.get(key) is not None:
            values[attribute] = read(given[key], key, report)
        elif required:
            report(key, "is required")
    return values


def _id(value: object, path: str, report: Report) -> str:
    if isinstance(value, str) and _ID.fullmatch(value):
        return value
    report(path, "has to be 1 to 100 letters, digits, dots, dashes or underscores")
    return ""


def _string(value: object, path: str, report: Report) -> str:
    if isinstance(value, str) and value.strip() and len(value) <= _LONGEST:
        return value
    report(path, f"has to be a string of 1 to {_LONGEST} characters that is not blank")
    return ""


def _owner(value: object, path: str, report: Report) -> str:
    try:
        return ref.canonical(_string(value, path, report), kind="group")
    except InputError as error:
        report(path, error.message)
    return ""


def _applies_to(value: object, path: str, report: Report) -> EntityFilter:
    return entity_filter.read([value] if isinstance(value, dict) else value, path, report)


def _on_unknown(value: object, path: str, report: Report) -> int:
    if isinstance(value, str) and value in _ON_UNKNOWN:
        return _ON_UNKNOWN[value]
    report(path, f"has to be one of {', '.join(_ON_UNKNOWN)}")
    return UNKNOWN


def _texts(
    value: object, names: Mapping[str, str], path: str, report: Report
) -> dict[str, str | None]:
    if not isinstance(value, dict):
        report(path, "has to be an object")
        return {}
    for name in value.keys() - names.keys():
        report(f"{path}.{name}", f"is not one of {', '.join(names)}")
    return {
        attribute: _string(value[name], f"{path}.{name}", report)
        for name, attribute in names.items()
        if value.get(name) is not None
    }


def _template(
    text: str | None, path: str, parse_text: Callable[[str], object], report: Report
) -> None:
    try:
        if text:
            parse_text(text)
    except InputError as error:
        report(path, error.message)


def _messages(value: object, path: str, report: Report) -> Messages:
    names = {"pass": "passing", "fail": "failing", "unknown": "unknown"}
    texts = _texts(value, names, path, report)
    for name, attribute in names.items():
        _template(texts.get(attribute), f"{path}.{name}", templates.parse, report)
    return Messages(**texts)


def _fix(value: object, path: str, report: Report) -> Fix:
    texts = _texts(value, {"link": "link", "instructions": "instructions"}, path, report)
    _template(texts.get("link"), f"{path}.link", templates.parse_link, report)
    _template(texts.get("instructions"), f"{path}.instructions", templates.parse, report)
    return Fix(**texts)


def _severity(value: object, path: str, report: Report) -> str:
    if isinstance(value, str) and value in SEVERITIES:
        return value
    report(path, f"has to be one of {', '.join(SEVERITIES)}")
    return ""


def _date(value: object, path: str, report: Report) -> date | None:
    if isinstance(value, date):
        return value
    try:
        return date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        report(path, "has to be a date such as 2027-01-31")
    return None


def _labels(value: object, path: str, report: Report) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MOST_LABELS:
        report(path, f"has to be a list of {MOST_LABELS} strings at most")
        return ()
    return tuple(_string(one, f"{path}[{i}]", report) for i, one in enumerate(value))


def _tests(value: object, path: str, report: Report) -> tuple[CheckTest, ...]:
    if not isinstance(value, list) or len(value) > MOST_TESTS:
        report(path, f"has to be a list of {MOST_TESTS} tests at most")
        return ()
    return tuple(check_test.read(one, f"{path}[{i}]", report) for i, one in enumerate(value))


class _CheckField(NamedTuple):
    key: str
    attribute: str
    read: Callable[[object, str, Report], Any]
    required: bool = False


_FIELDS: Final = (
    _CheckField("id", "id", _id, required=True),
    _CheckField("title", "title", _string, required=True),
    _CheckField("rule", "rule", condition.read, required=True),
    _CheckField("description", "description", _string),
    _CheckField("owner", "owner", _owner),
    _CheckField("appliesTo", "applies_to", _applies_to),
    _CheckField("applicableWhen", "applicable_when", condition.read),
    _CheckField("onUnknown", "on_unknown", _on_unknown),
    _CheckField("messages", "messages", _messages),
    _CheckField("fix", "fix", _fix),
    _CheckField("severity", "severity", _severity),
    _CheckField("effectiveFrom", "effective_from", _date),
    _CheckField("labels", "labels", _labels),
    _CheckField("tests", "tests", _tests),
)
