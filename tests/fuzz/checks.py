"""Parsers of checks: their documents, the templates of their texts, and versions."""

from typing import Any

import msgspec

from factbook.checks import document_readers, state
from factbook.checks.definitions import definition_writes, exemption_store, scorecard
from factbook.checks.definitions.definition_writes import CheckContext
from factbook.checks.rules import check_definition, check_trial, language
from factbook.checks.rules.check_definition import parse_check
from factbook.checks.rules.checked_entity import CheckedEntity
from factbook.checks.rules.rule_evaluation import CompiledCheck, explain_check
from factbook.checks.takeover import (
    parse_threshold,
    take_over_backstage,
    take_over_rhdh,
    take_over_roadie,
)
from factbook.datasources import fact_columns
from factbook.facts.freshness import Latest
from tests.checks.sources import CODE, SOURCES
from tests.fuzz.promises import json, lines, text, tried
from tests.fuzz.target import Target
from tests.service import NOON

_FACTS: dict[str, Any] = {
    "protected": True,
    "approvals": 2,
    "age": 1.5,
    "language": "go 1.4",
    "languages": ["go", "c", 1],
    "pushedAt": "2026-11-01T00:00:00Z",
    "manifest": {"type": "module", "jobs": [{"name": "ci"}]},
}
_ENTITY = CheckedEntity(
    "component:default/web",
    {"kind": "Component", "metadata": {"name": "web", "tags": ["a"]}, "spec": {"a.b": [1]}},
    {"code": Latest(_FACTS, {"open": "forbidden"}, "1.0.0", NOON)},
)


def check(data: bytes) -> None:
    """What is taken as a check has a state, a sentence and an explanation for any entity."""
    given = json(data)
    file = tried(document_readers.parse_file_document, given) if isinstance(given, dict) else None
    if file is not None:
        assert (
            tried(document_readers.parse_file_document, document_readers.make_file_document(*file))
            == file
        )
    found = tried(parse_check, file.document if file else given)
    if found is None:
        return
    outcome = CompiledCheck(found, 1).evaluate(_ENTITY, NOON)
    assert outcome.state in (state.PASS, state.FAIL, state.UNKNOWN, state.INAPPLICABLE)
    assert outcome.due is None or outcome.due > NOON
    explanation = explain_check(found, _ENTITY, NOON)
    assert explanation.state == outcome.state
    assert msgspec.json.encode([(one.value, one.wanted) for one in explanation.because])
    assert language.describe_rule(found.rule).endswith(".")
    assert len(check_trial.try_check(found, NOON)) == len(found.tests)
    assert all(message for _, message in check_trial.list_test_gaps(found))
    for problem in definition_writes.find_check_problems(found, CheckContext(SOURCES, {})):
        assert problem["message"]


def template(data: bytes) -> None:
    """A message is text; a link is an address that a browser opens without running anything."""
    for given in lines(data, 2):
        found = tried(check_definition.parse_template, given)
        assert found is None or isinstance(found.text(_ENTITY), str)
        address = tried(check_definition.parse_link_template, given)
        link = address.link(_ENTITY) if address else None
        assert link is None or link.lower().startswith(("http:", "https:", "mailto:"))


def document(data: bytes) -> None:
    """A scorecard names its levels once; an exemption is of a check or of a scorecard."""
    given = json(data)
    card = tried(scorecard.parse_scorecard, given)
    assert card is None or len(card.ranks) == len(card.levels)
    request = tried(exemption_store.parse_exemption_request, given, NOON)
    assert request is None or bool(request.check) != bool(request.scorecard)


def value_filter(data: bytes) -> None:
    """A filter of the values of a fact has the bounds that it was given."""
    name, *values = lines(data, 6)
    fact = next((one for one in CODE.schema if one.name == name), CODE.schema[0])
    keys = ("known", "reason", "value", "min", "below")
    given = {key: value or None for key, value in zip(keys, values, strict=True)}
    found = tried(fact_columns.read_value_filter, fact, given)
    assert found is None or (found.known is None) is (given["known"] is None)


def takeover(data: bytes) -> None:
    """What is taken over is taken by this service, and the rest is told."""
    given = json(data)
    for taken_over in (
        take_over_backstage,
        take_over_rhdh,
        take_over_roadie,
    ):
        found = tried(taken_over, given, {"7f3a": "code"})
        for kind, document in found.documents if found else ():
            assert tried(parse_check if kind == "check" else scorecard.parse_scorecard, document)
        for _, remark in found.remarks if found else ():
            assert remark.message
    for line in lines(data, 3):
        threshold = parse_threshold(line)
        assert threshold is None or threshold.matches(1) in (True, False)


def version(data: bytes) -> None:
    """Two versions are in one order, whichever is asked about first."""
    first, second = map(language.parse_version, lines(data, 2))
    if first is not None and second is not None:
        assert (first < second) + (first == second) + (first > second) == 1
    language.parse_version(text(data))


TARGETS = [
    Target(
        "check",
        check,
        (
            "checks.rules.check_definition.read_check_test",
            "checks.rules.language.read_condition",
            "checks.rules.check_definition.parse_check",
            "checks.document_readers.parse_file_document",
            "checks.rules.language.read_fact_reference",
            "checks.rules.language.read_operator_value",
            "checks.rules.language.read_form",
        ),
    ),
    Target(
        "check-template",
        template,
        (
            "checks.rules.check_definition.parse_template",
            "checks.rules.check_definition.parse_link_template",
        ),
    ),
    Target(
        "scorecard",
        document,
        (
            "checks.definitions.exemption_store.parse_exemption_request",
            "checks.document_readers.read_members",
            "checks.definitions.scorecard.parse_scorecard",
        ),
    ),
    Target("value-filter", value_filter, ("datasources.fact_columns.read_value_filter",)),
    Target("check-takeover", takeover, ("checks.takeover.parse_threshold",)),
    Target("version", version, ("checks.rules.language.parse_version",)),
]
