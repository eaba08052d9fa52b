"""Definitions of checks: parsing of check documents, with tests and templates.

Templates of messages and links insert values of an entity: `{{ metadata.name }}`,
`{{ facts.github['issues.open'] }}`. A check can read the states of other checks, but not its own
state through them.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from functools import partial
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from factbook.catalog import filters, validation
from factbook.catalog.filters import EntityFilter
from factbook.catalog.validation import deeper_than
from factbook.checks import document_readers, state
from factbook.checks.document_readers import DocumentMember
from factbook.checks.rules import language
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.language import CHECKS, ENTITY, FactReference, Rule
from factbook.checks.state import FAIL, PASS, UNKNOWN
from factbook.errors import InputError, Problems, not_a_member, one_of
from factbook.facts import schema
from factbook.facts.datasource import Report
from factbook.storage import Transaction

LONGEST_TEMPLATE: Final = 5_000
_LONGEST_TEMPLATE_VALUE: Final = 1_000
_MOST_PLACES: Final = 50
_SCHEMES: Final = ("https:", "http:", "mailto:")
_PLACE: Final = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_STEP: Final = re.compile(
    r"""\.?(?:(?P<name>[A-Za-z_][\w-]*)|\[(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)")\])""",
    re.ASCII,
)
# Browsers treat a backslash as a slash; invisible characters, and those that change text direction,
# disguise the real address.
_MISLEADING: Final = re.compile(
    r"[\x00-\x20\x7f-\xa0\\\xad\u034f\u061c\u180e\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff"
    r"\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_DEEPEST_TEST_ENTITY: Final = 20
# Tests have no exemptions.
_EXPECTED_WORDS: Final = tuple(
    word for word in state.WORDS if word != state.name_state(state.EXEMPT)
)
TEST_MEMBERS: Final = frozenset({"title", "facts", "reasons", "checks", "entity", "at", "expect"})
SEVERITIES: Final = ("required", "advisory")
MOST_LABELS: Final = 50
MOST_TESTS: Final = 100
_ON_UNKNOWN: Final = {"unknown": UNKNOWN, "fail": FAIL, "pass": PASS}


TemplateKeys = tuple[str, ...]


class MessageTemplate(Struct, frozen=True):
    """Text with placeholders; `parts` are texts and the keys of placeholders."""

    parts: tuple[str | TemplateKeys, ...]

    def facts(self) -> list[FactReference]:
        """The facts that the template reads."""
        return [FactReference(keys[1], keys[2]) for keys in self._places() if keys[0] == "facts"]

    def sources(self) -> set[str]:
        """The sources that the template reads, which may include `entity`."""
        return {keys[1] if keys[0] == "facts" else ENTITY for keys in self._places()}

    def text(self, entity: CheckedEntity) -> str:
        """The text for an entity."""
        return self._filled(
            lambda keys: _write_template_value(_read_keys(keys, entity)) or schema.UNKNOWN
        )

    def link(self, entity: CheckedEntity) -> str | None:
        """The address for an entity; None if a value is missing or browsers can't open it."""
        first = self.parts[0]
        # After a host, a value with @ would change the host.
        is_mail = isinstance(first, str) and first.lower().startswith("mailto:")
        safe = "@" if is_mail else "/"

        def fill(keys: TemplateKeys) -> str:
            text = _write_template_value(_read_keys(keys, entity))
            if not text:
                raise LookupError
            return text if keys is first else quote(text, safe=safe)

        try:
            found = self._filled(fill)
        except LookupError:
            return None
        is_link = found.lower().startswith(_SCHEMES) and not _MISLEADING.search(found)
        return found if is_link and validation.is_absolute_url(found) else None

    def _places(self) -> list[TemplateKeys]:
        return [part for part in self.parts if isinstance(part, tuple)]

    def _filled(self, fill: Callable[[TemplateKeys], str]) -> str:
        return "".join(part if isinstance(part, str) else fill(part) for part in self.parts)


def parse_template(text: str) -> MessageTemplate:
    """Parse a template; raises InputError."""
    if len(text) > LONGEST_TEMPLATE:
        raise InputError(f"is longer than {LONGEST_TEMPLATE} characters")
    pieces = _PLACE.split(text)
    if len(pieces) > 2 * _MOST_PLACES:
        raise InputError(f"can have {_MOST_PLACES} values at most")
    if any("{{" in plain or "}}" in plain for plain in pieces[::2]):
        raise InputError("has {{ without }}, or }} without {{")
    parts = [_parse_keys(piece.strip()) if i % 2 else piece for i, piece in enumerate(pieces)]
    return MessageTemplate(tuple(part for part in parts if part))


def parse_link_template(text: str) -> MessageTemplate:
    """Parse a template of an address; raises InputError."""
    template = parse_template(text)
    start = template.parts[0] if template.parts else ""
    if isinstance(start, str) and not start.lower().startswith(_SCHEMES):
        raise InputError("has to begin with https://, http:// or mailto:, or with a value")
    if (
        isinstance(start, str)
        and len(template.parts) == 1
        and not validation.is_absolute_url(start)
    ):
        raise InputError("is not an address")
    if any(isinstance(part, str) and _MISLEADING.search(part) for part in template.parts):
        raise InputError("has a space, a backslash or an invisible character")
    return template


def _parse_keys(text: str) -> TemplateKeys:
    keys, position = list[str](), 0
    while position < len(text):
        found = _STEP.match(text, position)
        if found is None:
            break
        keys.append(found["name"] or found["single"] or found["double"] or "")
        position = found.end()
    if position < len(text) or not keys or not all(keys):
        example = "metadata.name or facts.github['issues.open']"
        raise InputError(f"has {{{{ {text[:80]} }}}}, which isn't a path such as {example}")
    if keys[0] == "facts" and len(keys) != 3:
        raise InputError("has to name facts as facts.SOURCE['FACT']")
    return tuple(keys)


def _read_keys(keys: TemplateKeys, entity: CheckedEntity) -> Any:
    if keys[0] == "facts":
        return entity.values.get(keys[1], {}).get(keys[2])
    value: Any = entity.document
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _write_template_value(value: Any) -> str:
    """A value as text; empty unless it is a scalar or a list of scalars."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)[:_LONGEST_TEMPLATE_VALUE]
    if isinstance(value, list):
        return ", ".join(_write_template_value(one) for one in value[:_LONGEST_TEMPLATE_VALUE])[
            :_LONGEST_TEMPLATE_VALUE
        ]
    return ""


class CheckTest(Struct, frozen=True):
    """Invented facts and reasons by source, states of other checks, an entity and a time.

    `expect` is the state as a word. Facts are collected `at` the time of the test; None means the
    time at which the test runs.
    """

    expect: str
    title: str | None = None
    facts: Mapping[str, Mapping[str, Any]] = {}
    reasons: Mapping[str, Mapping[str, str]] = {}
    checks: Mapping[str, str] = {}
    entity: Mapping[str, Any] | None = None
    at: int | None = None


def read_check_test(value: object, path: str, report: Report) -> CheckTest:
    """Parse a test, and report every mistake with its path."""
    if not isinstance(value, dict):
        report(path, "has to be an object")
        return CheckTest("")
    for name in value.keys() - TEST_MEMBERS:
        report(f"{path}.{name}", not_a_member(name, "test", sorted(TEST_MEMBERS)))
    expect = _read_state_word(value.get("expect"), f"{path}.expect", report)
    facts = _read_by_source(value.get("facts", {}), f"{path}.facts", report)
    reasons = _read_by_source(value.get("reasons", {}), f"{path}.reasons", report)
    checks = value.get("checks", {})
    if not isinstance(checks, dict):
        report(f"{path}.checks", "has to be an object of checks")
        checks = {}
    return CheckTest(
        expect,
        str(value["title"]) if "title" in value else None,
        facts,
        reasons,
        {id_: _read_state_word(one, f"{path}.checks.{id_}", report) for id_, one in checks.items()},
        _read_test_entity(value.get("entity"), f"{path}.entity", report),
        _read_test_moment(value.get("at"), f"{path}.at", report),
    )


def _read_state_word(value: object, path: str, report: Report) -> str:
    if not isinstance(value, str) or value not in _EXPECTED_WORDS:
        report(path, one_of(value, _EXPECTED_WORDS))
    return str(value)


def _read_by_source(value: object, path: str, report: Report) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(value, dict):
        report(path, "has to be an object of sources")
        return {}
    for source, one in value.items():
        if not isinstance(one, dict):
            report(f"{path}.{source}", "has to be an object of facts")
    return {source: one for source, one in value.items() if isinstance(one, dict)}


def _read_test_entity(value: object, path: str, report: Report) -> Mapping[str, Any] | None:
    """The entity document of a test, with the types that the catalog expects."""
    if value is None:
        return None
    if not isinstance(value, dict) or deeper_than(value, _DEEPEST_TEST_ENTITY):
        report(path, f"has to be an object of {_DEEPEST_TEST_ENTITY} levels at most")
        return None
    if not isinstance(value.get("metadata", {}), dict):
        report(f"{path}.metadata", "has to be an object")
        return None
    relations = value.get("relations", [])
    if not isinstance(relations, list) or not all(
        isinstance(relation, dict)
        and isinstance(relation.get("type"), str)
        and isinstance(relation.get("targetRef"), str)
        for relation in relations
    ):
        report(f"{path}.relations", "has to be a list of objects with `type` and `targetRef`")
        return None
    return value


def _read_test_moment(value: object, path: str, report: Report) -> int | None:
    if value is None:
        return None
    try:
        return language.parse_moment(value if isinstance(value, str) else "")
    except ValueError:
        report(path, "has to be an ISO 8601 date, or date and time with a UTC offset")
    return None


class Messages(Struct, frozen=True):
    """Messages shown with a result; each is a template."""

    passing: str | None = None
    failing: str | None = None
    unknown: str | None = None


class Fix(Struct, frozen=True):
    """Instructions for making the check pass; both members are templates."""

    link: str | None = None
    instructions: str | None = None


class Check(Struct, frozen=True, kw_only=True):
    """A rule over the facts of entities.

    `applies_to` selects entities by catalog data, `applicable_when` by facts. `on_unknown` replaces
    an unknown result. Results before `effective_from`, the start of a day in milliseconds, don't
    count.
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
        """The rule and the condition for applying it, each with its path."""
        yield "rule", self.rule
        if self.applicable_when is not None:
            yield "applicableWhen", self.applicable_when

    def templates(self) -> Iterator[tuple[str, str]]:
        """The message and link templates, each with its path."""
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
        """Return true if results count at `now`."""
        return self.effective_from is None or self.effective_from <= now


def parse_check(document: object) -> Check:
    """Parse a check; raises InvalidItemsError with every mistake and its path."""
    return Check(**document_readers.read_document(document, CHECK_MEMBERS, "check"))


def parse_stored_check(document: object) -> Check:
    """Parse a stored document, whose patterns an older release may have accepted.

    Comparisons with patterns that this release refuses are unknown.
    """
    return Check(**document_readers.read_document(document, _STORED_CHECK_MEMBERS, "check"))


def find_refused_check_patterns(check: Check) -> Iterator[tuple[str, str]]:
    """(path, reason) of each pattern of a stored check that this release refuses."""
    for path, rule in check.rules():
        yield from language.find_refused_patterns(rule, path)


def _read_rule(value: object, path: str, report: Report) -> Rule | None:
    """Read a condition, and report patterns that can't be evaluated."""
    rule = language.read_condition(value, path, report)
    for where, reason in language.find_refused_patterns(rule, path) if rule else ():
        report(where, reason)
    return rule


def _read_applies_to(value: object, path: str, report: Report) -> EntityFilter:
    return filters.parse_entity_filter([value] if isinstance(value, dict) else value, path, report)


def _read_on_unknown(value: object, path: str, report: Report) -> int:
    if isinstance(value, str) and value in _ON_UNKNOWN:
        return _ON_UNKNOWN[value]
    report(path, one_of(value, _ON_UNKNOWN))
    return UNKNOWN


def _read_texts(
    value: object, names: Mapping[str, str], path: str, report: Report
) -> dict[str, str | None]:
    if not isinstance(value, dict):
        report(path, "has to be an object")
        return {}
    for name in value.keys() - names.keys():
        report(f"{path}.{name}", one_of(name, names))
    return {
        attribute: document_readers.read_words(value[name], f"{path}.{name}", report)
        for name, attribute in names.items()
        if value.get(name) is not None
    }


def _check_template(
    text: str | None, path: str, parse_text: Callable[[str], object], report: Report
) -> None:
    try:
        if text:
            parse_text(text)
    except InputError as error:
        report(path, error.message)


def _read_messages(value: object, path: str, report: Report) -> Messages:
    names = {"pass": "passing", "fail": "failing", "unknown": "unknown"}
    texts = _read_texts(value, names, path, report)
    for name, attribute in names.items():
        _check_template(texts.get(attribute), f"{path}.{name}", parse_template, report)
    return Messages(**texts)


def _read_fix(value: object, path: str, report: Report) -> Fix:
    texts = _read_texts(value, {"link": "link", "instructions": "instructions"}, path, report)
    _check_template(texts.get("link"), f"{path}.link", parse_link_template, report)
    _check_template(texts.get("instructions"), f"{path}.instructions", parse_template, report)
    return Fix(**texts)


def _read_severity(value: object, path: str, report: Report) -> str:
    if isinstance(value, str) and value in SEVERITIES:
        return value
    report(path, one_of(value, SEVERITIES))
    return ""


def _read_check_labels(value: object, path: str, report: Report) -> tuple[str, ...]:
    listed = document_readers.read_array(value, path, report, MOST_LABELS)
    return tuple(
        document_readers.read_title(one, f"{path}[{i}]", report) for i, one in enumerate(listed)
    )


def _read_check_tests(value: object, path: str, report: Report) -> tuple[CheckTest, ...]:
    listed = document_readers.read_array(value, path, report, MOST_TESTS)
    return tuple(read_check_test(one, f"{path}[{i}]", report) for i, one in enumerate(listed))


CHECK_MEMBERS: Final = (
    DocumentMember("id", "id", document_readers.read_identifier, required=True),
    DocumentMember("title", "title", document_readers.read_title, required=True),
    DocumentMember("rule", "rule", _read_rule, required=True),
    DocumentMember("description", "description", document_readers.read_text),
    DocumentMember("owner", "owner", partial(document_readers.read_entity_reference, kind="group")),
    DocumentMember("appliesTo", "applies_to", _read_applies_to),
    DocumentMember("applicableWhen", "applicable_when", _read_rule),
    DocumentMember("onUnknown", "on_unknown", _read_on_unknown),
    DocumentMember("messages", "messages", _read_messages),
    DocumentMember("fix", "fix", _read_fix),
    DocumentMember("severity", "severity", _read_severity),
    DocumentMember("effectiveFrom", "effective_from", document_readers.read_day),
    DocumentMember("labels", "labels", _read_check_labels),
    DocumentMember("tests", "tests", _read_check_tests),
)


_STORED_CHECK_MEMBERS: Final = tuple(
    one._replace(read=language.read_condition) if one.read is _read_rule else one
    for one in CHECK_MEMBERS
)


Document = Mapping[str, Any]


def list_referenced_checks(document: Document) -> dict[str, str]:
    """The ids of the checks that a document reads, each with its first path."""
    found: dict[str, str] = {}
    for name in ("applicableWhen", "rule"):
        for path, check_id in _find_mentions(document.get(name), name):
            found.setdefault(check_id, path)
    return found


def list_checks_read(check: Check) -> frozenset[str]:
    """The ids of the checks that a check reads."""
    facts = (fact for _, rule in check.rules() for fact in language.walk_references(rule))
    return frozenset(fact.fact for fact in facts if fact.source == CHECKS)


def order_by_reads(reads: Mapping[str, Set[str]]) -> list[str]:
    """The ids of checks, each after the checks that it reads.

    Checks of a cycle, which publication refuses, are in no particular order.
    """
    sorter = TopologicalSorter({id_: read & reads.keys() for id_, read in reads.items()})
    try:
        return list(sorter.static_order())
    except CycleError:
        return list(reads)


def find_way_back(own: str, first: str, reads: Callable[[str], Iterable[str]]) -> list[str]:
    """The shortest path from a check through `first` back to itself; empty if there is none."""
    ways, seen = [[own, first]], set[str]()
    for way in ways:
        if way[-1] == own:
            return way
        if way[-1] not in seen:
            seen.add(way[-1])
            ways += [[*way, id_] for id_ in reads(way[-1])]
    return []


def check_references(
    document: Document,
    others: Mapping[str, Document],
    known: set[str],
    drafts: Collection[str] = (),
) -> None:
    """Raise InvalidItemsError if a document reads missing checks, or itself indirectly.

    `others` includes all documents that read checks, by id; `known` are all ids, and `drafts` the
    ids with a separate draft.
    """
    own = document["id"]
    problems = Problems()
    for check_id, path in list_referenced_checks(document).items():
        if check_id != own and check_id not in known:
            problems.report(path, f"there is no check {check_id}")
        elif circle := find_way_back(
            own, check_id, lambda id_: list_referenced_checks(others.get(id_, {}))
        ):
            text = f"the check would read itself: {' → '.join(circle)}"
            waiting = [id_ for id_ in circle[1:-1] if id_ in drafts]
            problems.report(
                path,
                f"{text}; publish the draft of {' and '.join(waiting)} first" if waiting else text,
            )
    problems.check()


def list_readers(transaction: Transaction, check_id: str, *, drafts: bool = False) -> list[str]:
    """The ids of checks that read this one, directly or not; `drafts` includes drafts."""
    reads: dict[str, set[str]] = {}
    for id_, *texts in transaction.all(_READING):
        documents = [msgspec.json.decode(text) for text in texts[: 3 if drafts else 2] if text]
        reads[id_] = {read for document in documents for read in list_referenced_checks(document)}
    found, new = set[str](), {check_id}
    while new:
        found |= new
        new = {id_ for id_, read in reads.items() if id_ not in found and read & found}
    return sorted(found - {check_id})


def _find_mentions(condition: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(condition, list):
        for position, one in enumerate(condition):
            yield from _find_mentions(one, f"{path}[{position}]")
    elif isinstance(condition, Mapping):
        if condition.get("source") == CHECKS:
            yield f"{path}.fact", str(condition.get("fact"))
        for name in ("all", "any", "not", "value"):
            if name in condition:
                yield from _find_mentions(condition[name], f"{path}.{name}")


# Only documents with the word can name another check.
_READING = """
SELECT id, published, pending, draft FROM checks
WHERE published LIKE '%"checks"%' OR pending LIKE '%"checks"%' OR draft LIKE '%"checks"%'
"""
