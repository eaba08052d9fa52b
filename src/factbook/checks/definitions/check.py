"""Definitions of checks: parsing of the document that defines one."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from factbook.checks import readers
from factbook.checks.definitions import check_test, templates
from factbook.checks.definitions.check_test import CheckTest
from factbook.checks.readers import DocumentMember
from factbook.checks.rules import condition
from factbook.checks.rules.condition import Rule
from factbook.checks.state import FAIL, PASS, UNKNOWN
from factbook.errors import InputError, one_of
from factbook.facts import entity_filter
from factbook.facts.entity_filter import EntityFilter
from factbook.facts.members import Report

SEVERITIES: Final = ("required", "advisory")
MOST_LABELS: Final = 50
MOST_TESTS: Final = 100

_ON_UNKNOWN: Final = {"unknown": UNKNOWN, "fail": FAIL, "pass": PASS}


class Messages(Struct, frozen=True):
    """Messages that are shown with a result; each is a template."""

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
    `on_unknown` is the state of an unknown result. Results before `effective_from`, the start of a
    day in milliseconds, do not count.
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
    effective_from: int | None = None
    labels: tuple[str, ...] = ()
    tests: tuple[CheckTest, ...] = ()

    def rules(self) -> Iterator[tuple[str, Rule]]:
        """The rule, and the condition under which it is applied, with the path of each."""
        yield "rule", self.rule
        if self.applicable_when is not None:
            yield "applicableWhen", self.applicable_when

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

    def is_effective(self, now: int) -> bool:
        """Return true if its results count by now."""
        return self.effective_from is None or self.effective_from <= now


def parse_check(document: object) -> Check:
    """Parse a document; raises InvalidItemsError with every mistake and its path."""
    return Check(**readers.members(document, MEMBERS, "check"))


def parse_stored_check(document: object) -> Check:
    """The same for a stored document, whose patterns an older release may have taken.

    A comparison with a pattern that this release refuses is unknown.
    """
    return Check(**readers.members(document, _STORED_MEMBERS, "check"))


def refused_patterns(check: Check) -> Iterator[tuple[str, str]]:
    """(path, reason) of each pattern of a stored check that this release doesn't take."""
    for path, rule in check.rules():
        yield from condition.refused_patterns(rule, path)


def _rule(value: object, path: str, report: Report) -> Rule | None:
    """Read a condition whose patterns can be evaluated."""
    rule = condition.read(value, path, report)
    for where, reason in condition.refused_patterns(rule, path) if rule else ():
        report(where, reason)
    return rule


def _owner(value: object, path: str, report: Report) -> str:
    return readers.reference(value, path, report, kind="group")


def _applies_to(value: object, path: str, report: Report) -> EntityFilter:
    return entity_filter.read([value] if isinstance(value, dict) else value, path, report)


def _on_unknown(value: object, path: str, report: Report) -> int:
    if isinstance(value, str) and value in _ON_UNKNOWN:
        return _ON_UNKNOWN[value]
    report(path, one_of(value, _ON_UNKNOWN))
    return UNKNOWN


def _texts(
    value: object, names: Mapping[str, str], path: str, report: Report
) -> dict[str, str | None]:
    if not isinstance(value, dict):
        report(path, "has to be an object")
        return {}
    for name in value.keys() - names.keys():
        report(f"{path}.{name}", one_of(name, names))
    return {
        attribute: readers.words(value[name], f"{path}.{name}", report)
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
    report(path, one_of(value, SEVERITIES))
    return ""


def _labels(value: object, path: str, report: Report) -> tuple[str, ...]:
    listed = readers.array(value, path, report, MOST_LABELS)
    return tuple(readers.title(one, f"{path}[{i}]", report) for i, one in enumerate(listed))


def _tests(value: object, path: str, report: Report) -> tuple[CheckTest, ...]:
    listed = readers.array(value, path, report, MOST_TESTS)
    return tuple(check_test.read(one, f"{path}[{i}]", report) for i, one in enumerate(listed))


MEMBERS: Final = (
    DocumentMember("id", "id", readers.identifier, required=True),
    DocumentMember("title", "title", readers.title, required=True),
    DocumentMember("rule", "rule", _rule, required=True),
    DocumentMember("description", "description", readers.text),
    DocumentMember("owner", "owner", _owner),
    DocumentMember("appliesTo", "applies_to", _applies_to),
    DocumentMember("applicableWhen", "applicable_when", _rule),
    DocumentMember("onUnknown", "on_unknown", _on_unknown),
    DocumentMember("messages", "messages", _messages),
    DocumentMember("fix", "fix", _fix),
    DocumentMember("severity", "severity", _severity),
    DocumentMember("effectiveFrom", "effective_from", readers.day),
    DocumentMember("labels", "labels", _labels),
    DocumentMember("tests", "tests", _tests),
)

_STORED_MEMBERS: Final = tuple(
    one._replace(read=condition.read) if one.read is _rule else one for one in MEMBERS
)
