"""Which service annotations point to, and that they never choose an account or an address."""

from typing import Any

import pytest

from factbook.integrations.pagerduty import INTEGRATION
from factbook.outbound.outcomes import Missing, Outcome
from tests.integrations.pagerduty.asking import KEY

SERVICE = "pagerduty.com/service-id"
INTEGRATION_KEY = "pagerduty.com/integration-key"
ACCOUNT = "pagerduty.com/account"


def target(annotations: Any, **table: Any) -> str | Missing:
    """The target of a component with these annotations."""
    integration = INTEGRATION.configured("default", {"api_key": KEY} | table)
    metadata = {"name": "app"} | ({} if annotations is None else {"annotations": annotations})
    return integration.target({"kind": "Component", "metadata": metadata})


def test_an_id_points_to_a_service(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({SERVICE: "PAPP001"}, ""),
        ({SERVICE: " papp001\n"}, ""),
        ({SERVICE: "PAPP001", INTEGRATION_KEY: "0123456789abcdef"}, ""),
        ({SERVICE: "PAPP001", ACCOUNT: "other"}, ""),
        ({SERVICE: "PAPP001", ACCOUNT: 7}, ""),
        ({SERVICE: "PAPP001"}, "acme"),
        ({SERVICE: "PAPP001", ACCOUNT: " Acme "}, "acme"),
    ]
    for annotations, account in cases:
        with subtests.test(annotations=annotations, account=account):
            assert target(annotations, account=account) == "PAPP001"


@pytest.mark.spec("sources.annotations-choose-among-the-configured")
def test_other_annotations_point_to_nothing(subtests: pytest.Subtests) -> None:
    cases: list[Any] = [
        None,
        "PAPP001",
        {},
        {SERVICE: ""},
        {SERVICE: 7},
        {SERVICE: None},
        {SERVICE: ["PAPP001"]},
        {SERVICE: "PAPP001/integrations"},
        {SERVICE: ".."},
        {SERVICE: "../users/me"},
        {SERVICE: "%2e%2e%2fusers"},
        {SERVICE: "PAPP001%2fusers"},
        {SERVICE: "PAPP001?include[]=teams"},
        {SERVICE: "PAPP001#x"},
        {SERVICE: "PAPP001\nhost: evil.example.net"},
        {SERVICE: "https://evil.example.net/services/PAPP001"},
        {SERVICE: "//evil.example.net/PAPP001"},
        {SERVICE: "PAPP\u0660\u0661"},
        {SERVICE: "P" * 10_000},
        {SERVICE: "PAPP001", ACCOUNT: "other"},
        {SERVICE: "PAPP001", ACCOUNT: "acme.pagerduty.com"},
        {SERVICE: "PAPP001", ACCOUNT: "https://acme@evil.example.net"},
        {SERVICE: "PAPP001", ACCOUNT: ["acme"]},
        {SERVICE: "PAPP001", ACCOUNT: ""},
    ]
    for annotations in cases:
        with subtests.test(annotations=annotations):
            found = target(annotations, account="acme")
            assert isinstance(found, Missing)
            assert found.outcome in {Outcome.NO_ANNOTATION, Outcome.BAD_ANNOTATION}


def test_an_integration_key_alone_says_what_is_needed_and_not_the_key() -> None:
    found = target({INTEGRATION_KEY: "0123456789abcdef"})
    assert isinstance(found, Missing)
    said = "an integration key names no service; pagerduty.com/service-id does"
    assert found.reason == f"no-annotation: {said}"


def test_an_annotation_that_cannot_be_read_is_told_from_one_that_is_not_there() -> None:
    bad, none = (target({"pagerduty.com/service-id": id_}) for id_ in ("../users", ""))
    assert isinstance(bad, Missing)
    assert isinstance(none, Missing)
    outcomes = bad.outcome, none.outcome
    assert outcomes == (Outcome.BAD_ANNOTATION, Outcome.NO_ANNOTATION)
