"""The five metric tools without an integration: what they say is unknown, and why."""

from collections.abc import Iterator
from typing import Any

import pytest

from factbook.facts import schema
from factbook.facts.datasource import DataSource
from factbook.facts.schema import REASONS, Shape
from factbook.integrations import SOURCES
from factbook.integrations.integration import list_shape_facts
from factbook.tools import TOOLS
from tests.conftest import StartService
from tests.service import Service, component, resource
from tests.tools.checks import refusal, structured
from tests.tools.sources import record

CODEHOST = "get-codehost-metrics"
SECURITY = "get-security-metrics"
INCIDENT = "get-incident-metrics"
OBSERVABILITY = "get-observability-metrics"
REPOSITORY = "get-repository-info"

EITHER = (CODEHOST, SECURITY)
NAMED = (INCIDENT, OBSERVABILITY)
PAYMENTS = "component:default/payments"
NOT_CONFIGURED = "not-configured"


@pytest.fixture
async def filled(service: Service) -> Service:
    away = component("payments", type="website")
    away["metadata"]["namespace"] = "away"
    answer = await service.push("first", component("payments"), resource("payments"), away)
    assert answer.status_code == 200, answer.text
    return service


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every value within a result that is no object, with its path."""
    if not isinstance(value, dict):
        yield path, value
        return
    for name, part in value.items():
        yield from leaves(part, f"{path}.{name}".lstrip("."))


# Nothing is configured


@pytest.mark.spec(
    "unknown.literal-in-typed-leaves",
    "unknown.every-leaf-has-a-reason",
    "unknown.empty-lists-have-a-reason",
    "unknown.not-configured",
    "tools.facts.unconfigured-is-unavailable",
    "tools.codehost.number-leaves",
    "tools.codehost.boolean-leaves",
)
async def test_every_code_host_leaf_is_unknown_for_want_of_an_integration(filled: Service) -> None:
    found = structured(CODEHOST, await filled.ask(CODEHOST, name="payments"))
    reasons, collected = found.pop("unknownReasons"), found.pop("collectedAt")
    values = dict(leaves(found))
    lists = {"collaboration.languages", "collaboration.collaborators"}
    assert {path for path, value in values.items() if value == []} == lists
    assert {value for path, value in values.items() if path not in lists} == {"unknown"}
    assert len(values) == 35
    assert reasons == {"*": NOT_CONFIGURED}
    assert collected == {}


@pytest.mark.spec(
    "unknown.omitted-groups-have-a-reason",
    "unknown.optional-fields-are-omitted",
    "unknown.not-configured",
    "tools.facts.unconfigured-is-unavailable",
    "tools.security.unavailable-groups-are-omitted",
    "tools.incident.unavailable-groups-are-omitted",
)
@pytest.mark.parametrize(
    ("tool", "groups"),
    [
        (SECURITY, ["scannerIssues", "dependencyAlerts", "branchProtection"]),
        (INCIDENT, ["incidentMetrics", "serviceInfo"]),
    ],
)
async def test_optional_groups_are_left_out_for_want_of_an_integration(
    filled: Service, tool: str, groups: list[str]
) -> None:
    found = structured(tool, await filled.ask(tool, name="payments"))
    reasons = dict.fromkeys(groups, NOT_CONFIGURED)
    assert found == {"unknownReasons": reasons, "collectedAt": {}}


@pytest.mark.spec(
    "tools.observability.unavailable-is-an-error",
    "tools.repository.unavailable-is-an-error",
    "tools.facts.unconfigured-is-unavailable",
    "unknown.not-configured",
    "tool-error.says-what-to-do-next",
)
@pytest.mark.parametrize("tool", [OBSERVABILITY, REPOSITORY])
async def test_where_nothing_can_stand_for_a_number_the_answer_is_an_error_with_the_reason(
    filled: Service, tool: str
) -> None:
    text = refusal(await filled.ask(tool, name="payments"))
    assert "not available" in text
    assert f"({NOT_CONFIGURED})" in text
    assert text.endswith(REASONS[NOT_CONFIGURED])
    assert "administrator can configure" in text


# Which entity


@pytest.mark.spec("tools.facts.name-or-entity-ref")
@pytest.mark.parametrize("tool", EITHER)
async def test_a_name_alone_and_a_reference_alone_both_do(filled: Service, tool: str) -> None:
    expected = await filled.facts(tool, name="payments")
    ways: list[dict[str, str]] = [
        {"entityRef": PAYMENTS},
        {"entityRef": "Component:Default/PAYMENTS"},
        {"entityRef": "payments"},
        {"entityRef": "component:payments"},
        {"entityRef": "resource:default/payments"},
        {"name": "payments", "kind": "resource"},
        {"name": "payments", "namespace": "away"},
        {"name": PAYMENTS},
        {"entityRef": PAYMENTS, "name": ""},
        {"name": "payments", "entityRef": ""},
    ]
    for way in ways:
        assert structured(tool, await filled.ask(tool, **way)) == expected, way


@pytest.mark.spec("tools.facts.agreeing-name-and-ref")
@pytest.mark.parametrize("tool", EITHER)
async def test_name_and_reference_together_do_when_they_mean_one_entity(
    filled: Service, tool: str
) -> None:
    for way in (
        {"name": "payments", "entityRef": PAYMENTS},
        {"name": "PAYMENTS", "entityRef": "payments"},
        {"name": "payments", "kind": "resource", "entityRef": "resource:default/payments"},
        {"name": "payments", "namespace": "away", "entityRef": "component:away/payments"},
        {"name": "payments", "kind": "resource", "entityRef": "payments"},
    ):
        assert structured(tool, await filled.ask(tool, **way))["unknownReasons"], way


@pytest.mark.spec("tools.facts.neither-or-differing", "tool-error.says-what-to-do-next")
@pytest.mark.parametrize("tool", EITHER)
async def test_neither_or_two_that_differ_are_refused_naming_both_ways(
    filled: Service, tool: str
) -> None:
    for way in (
        {},
        {"name": "", "entityRef": ""},
        {"kind": "component", "namespace": "default"},
        {"name": "payments", "entityRef": "component:default/other"},
        {"name": "payments", "entityRef": "resource:default/payments"},
        {"name": "payments", "namespace": "away", "entityRef": PAYMENTS},
    ):
        text = refusal(await filled.ask(tool, **way))
        assert "Give either name" in text, way
        assert "or entityRef, such as component:default/payments-api" in text, way
        if way.get("entityRef"):
            assert way["entityRef"] in text


@pytest.mark.spec("tools.facts.defaults")
async def test_an_entity_is_looked_for_where_the_defaults_and_the_arguments_say(
    filled: Service, subtests: pytest.Subtests
) -> None:
    nobody = {
        "component:default/nobody": {"name": "nobody"},
        "resource:default/nobody": {"name": "nobody", "kind": "Resource"},
        "component:away/nobody": {"name": "nobody", "namespace": "away"},
    }
    for tool in [*EITHER, *NAMED, "get-entity-compliance"]:
        with subtests.test(tool=tool):
            for ref, way in nobody.items():
                text = refusal(await filled.ask(tool, **way))
                assert text.startswith(f"There is no entity {ref} in the catalog.")


@pytest.mark.spec("tools.repository.no-kind-argument", "tools.facts.defaults")
async def test_repository_info_is_about_a_component_and_takes_no_kind(filled: Service) -> None:
    text = refusal(await filled.ask(REPOSITORY, name="nobody", namespace="away"))
    assert text.startswith("There is no entity component:away/nobody in the catalog.")
    text = refusal(await filled.ask(REPOSITORY, name="payments", kind="component"))
    assert "unknown field `kind`" in text


async def test_an_unknown_entity_is_told_before_a_missing_integration(filled: Service) -> None:
    for tool in (*EITHER, *NAMED, REPOSITORY):
        text = refusal(await filled.ask(tool, name="nobody"))
        assert NOT_CONFIGURED not in text


# Several sources that fill a shape


def filling(id_: str, shape: Shape, *entity_filter: dict[str, Any]) -> DataSource:
    return DataSource(
        id=id_,
        title=id_,
        entity_filter=entity_filter or None,
        schema=list_shape_facts(shape),
    )


TAGS = {"metadata.annotations.example.com/tags": {"exists": True}}
FIRST = filling("first", schema.OBSERVABILITY)
SECOND = filling("second", schema.OBSERVABILITY)
APART = filling("apart", schema.OBSERVABILITY, TAGS)


@pytest.mark.spec("tools.observability.unavailable-is-an-error")
async def test_what_one_source_knows_is_used_and_told_where_the_other_does_not(
    start: StartService,
) -> None:
    service = await start(sources=[*SOURCES, FIRST, SECOND, APART])
    await service.push("all", component("payments"))
    gone = {"observability.sloCount": "not-applicable: this Prometheus evaluates no rules"}
    await record(service, PAYMENTS, {"observability.monitorCount": 12}, FIRST, gone)
    denied = {"": "forbidden: needs slos_read"}
    await record(service, PAYMENTS, {}, SECOND, denied)
    text = refusal(await service.ask(OBSERVABILITY, name="payments"))
    assert text == (
        "Observability metrics are not available: sloCount is not known (forbidden: needs "
        f"slos_read). Known: monitorCount is 12. {REASONS['forbidden']}"
    )
    await record(service, PAYMENTS, {"observability.sloCount": 3}, SECOND, denied)
    found = structured(OBSERVABILITY, await service.ask(OBSERVABILITY, name="payments"))
    assert (found["sloCount"], found["monitorCount"]) == (3, 12)


@pytest.mark.parametrize("name", [OBSERVABILITY, REPOSITORY])
def test_the_tools_that_need_every_number_do_not_promise_unknown(name: str) -> None:
    [tool] = [tool for tool in TOOLS if tool.name == name]
    assert "`unknown`" not in tool.description
    assert "the answer is an error, whose text has the values that are known" in tool.description
