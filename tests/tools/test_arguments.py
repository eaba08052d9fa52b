"""Arguments of every tool: null and "" are none, and a reference in full is not contradicted."""

from typing import Any

import pytest

from factbook.tools import TOOLS
from tests.service import Service, component

KNOWN: dict[str, Any] = {
    "name": "payments",
    "dataSourceId": "entity-metadata",
    "since": "7d",
}
REFUSED = "get-repository-info", "get-observability-metrics"


async def test_null_for_what_may_be_left_out_means_the_same(
    service: Service, subtests: pytest.Subtests
) -> None:
    assert TOOLS
    await service.push("all", component("payments"))
    for tool in TOOLS:
        with subtests.test(tool.name):
            schema = tool.input_schema
            needed = {name: KNOWN[name] for name in schema["required"]}
            if "entityRef" in schema["properties"]:
                needed["name"] = "payments"
            optional = schema["properties"].keys() - needed.keys()
            ask = service.refusal if tool.name in REFUSED else service.facts
            plain = await ask(tool.name, **needed)
            for nothing in (None, ""):
                given = {**needed, **dict.fromkeys(optional, nothing)}
                assert await ask(tool.name, **given) == plain


async def test_null_is_no_value_of_what_is_needed_or_unknown(service: Service) -> None:
    text = await service.refusal("get-entity-compliance", name=None)
    assert "null" in text
    text = await service.refusal("get-entity-compliance", name="payments", colour=None)
    assert "colour" in text


async def test_a_part_that_contradicts_a_reference_in_full_is_refused(
    service: Service, subtests: pytest.Subtests
) -> None:
    await service.push("all", component("payments"), component("payments") | {"kind": "API"})
    cases: list[tuple[str, dict[str, Any], str]] = [
        (
            "get-entity-compliance",
            {"name": "api:default/payments", "kind": "component"},
            "kind says component, and the reference api:default/payments says api.",
        ),
        (
            "get-codehost-metrics",
            {"entityRef": "component:default/payments", "kind": "API"},
            "kind says API, and the reference component:default/payments says component.",
        ),
        (
            "get-security-metrics",
            {"entityRef": "component:shop/payments", "namespace": "default"},
            "namespace says default, and the reference component:shop/payments says shop.",
        ),
        (
            "get-fact-history",
            {"name": "shop/payments", "namespace": "Default"},
            "namespace says Default, and the reference shop/payments says shop.",
        ),
    ]
    for tool, arguments, message in cases:
        with subtests.test(tool=tool, arguments=arguments):
            assert message in await service.refusal(tool, **arguments)


async def test_parts_that_agree_or_are_left_out_are_read(
    service: Service, subtests: pytest.Subtests
) -> None:
    entity = component("payments") | {"kind": "API"}
    del entity["spec"]["owner"]
    await service.push("all", component("payments"), entity)
    cases: list[dict[str, Any]] = [
        {"name": "api:default/payments"},
        {"name": "api:default/payments", "kind": "Api", "namespace": "DEFAULT"},
        {"name": "default/payments", "kind": "api"},
        {"name": "API:payments", "namespace": " default "},
    ]
    for arguments in cases:
        with subtests.test(arguments=arguments):
            owned = [
                (await service.facts("get-entity-compliance", **given))["ownership"]["hasOwner"]
                for given in (arguments, {"name": "payments"})
            ]
            assert owned == [False, True]
