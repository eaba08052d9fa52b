"""Which service annotations name, and what becomes of it in a query."""

import ast
import re
from typing import Any

import pytest

from factbook.integrations.prometheus import INTEGRATION
from factbook.outbound.outcomes import Missing, Outcome
from tests.fakes.prometheus import Episode, Server, alerting
from tests.integrations.prometheus.asking import DAY, HOUR, NOW, started

SERVICE = "prometheus.io/service"
LABELS = "prometheus.io/labels"
HOSTILE = [
    'x"} or up{a="',
    "x\\",
    '\\"',
    ".*",
    "checkout|search",
    "(a+)+$",
    "$",
    "//evil.example.com/x",
    "../../admin",
    "%2e%2e%2f",
    "{{ $labels.x }}",
    "größe 🚀",
]


def target(annotations: dict[str, Any] | None, **table: Any) -> str | Missing:
    """The target of a component with these annotations."""
    given = {"base_url": "https://prometheus.example.com"} | table
    metadata = {"name": "app"} | ({} if annotations is None else {"annotations": annotations})
    integration = INTEGRATION.configured("default", given)
    return integration.target({"kind": "Component", "metadata": metadata})


def test_annotations_name_a_service(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], dict[str, Any], str]] = [
        ({SERVICE: "checkout"}, {}, "checkout"),
        ({SERVICE: " Check out "}, {}, "Check out"),
        ({SERVICE: "checkout", LABELS: "service=search"}, {}, "checkout"),
        ({LABELS: "env=production, service = search"}, {}, "search"),
        ({LABELS: "app=search,service=x"}, {"label": "app"}, "search"),
    ]
    for annotations, table, expected in cases:
        with subtests.test(annotations=annotations, table=table):
            assert target(annotations, **table) == expected


@pytest.mark.spec("sources.annotations-choose-among-the-configured")
def test_other_annotations_name_none(subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any] | None] = [
        None,
        {},
        {SERVICE: ""},
        {SERVICE: "  "},
        {SERVICE: 7},
        {SERVICE: ["checkout"]},
        {SERVICE: "a\nb"},
        {SERVICE: "a\0b"},
        {SERVICE: "a\ud800b"},
        {SERVICE: "x" * 201},
        {LABELS: "env=production"},
        {LABELS: "service"},
        {LABELS: {"service": "x"}},
        {"prometheus.io/service-name": "https://evil.example.com"},
        {"prometheus.io/rule": "up|service", "prometheus.io/alert": "all"},
    ]
    for annotations in cases:
        with subtests.test(annotations=annotations):
            found = target(annotations)
            assert isinstance(found, Missing)
            assert found.outcome in {Outcome.NO_ANNOTATION, Outcome.BAD_ANNOTATION}


@pytest.mark.slow
async def test_a_name_stands_in_a_query_for_itself_alone(subtests: pytest.Subtests) -> None:
    for service in HOSTILE:
        with subtests.test(service=service):
            assert target({SERVICE: service}) == service
            server = Server(
                NOW - 400 * DAY,
                episodes=[
                    Episode(service, "Down", NOW - DAY, NOW - DAY + HOUR),
                    Episode("checkout", "Down", NOW - DAY, NOW - DAY + HOUR),
                    Episode("search", "Down", NOW - DAY, NOW - DAY + HOUR),
                ],
                rules=[alerting("Down", service=service)],
                configuration="route: {receiver: x}",
            )
            fake, asking = started(server)
            collected = await asking.one(service)
            assert collected.values["incident.incidentMetrics.monthlyIncidents"] == 1
            for query in fake.queries:
                for quoted in re.findall(r'service=~("(?:[^"\\]|\\.)*")', query):
                    assert re.fullmatch(ast.literal_eval(quoted), service)
            assert set(fake.proofs) == {"prometheus.example.com", "alerts.example.com"}
