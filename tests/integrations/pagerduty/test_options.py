"""The settings of one PagerDuty account."""

from typing import Any

import pytest

from factbook.errors import ConfigurationError
from factbook.facts import datasource
from factbook.integrations.pagerduty import INTEGRATION, PagerdutyOptions

SECRET = "u+a_secret_of_tests"
WHERE = "integrations.pagerduty.work: "


def test_a_mistake_is_named_without_a_value(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "an api_key is needed."),
        (
            {"api_key": SECRET, "base_url": "api.pagerduty.com"},
            "base_url has to begin with https://.",
        ),
        (
            {"api_key": SECRET, "account": "acme.pagerduty.com"},
            "account has to be a subdomain in lower case, such as acme.",
        ),
        ({"api_kee": SECRET}, "Object contains unknown field `api_kee` (did you mean api_key?)."),
        ({"api_key": [SECRET]}, "Expected text, got a list - at `$.api_key`."),
    ]
    for table, message in cases:
        with subtests.test(table=table):
            with pytest.raises(ConfigurationError) as raised:
                INTEGRATION.configured("work", table)
            assert raised.value.message == WHERE + message


def test_no_secret_is_shown() -> None:
    integration = INTEGRATION.configured("default", {"api_key": SECRET})
    assert (
        SECRET
        not in f"{integration!r} {integration.source.render()} {PagerdutyOptions(api_key=SECRET)}"
    )


def test_the_source_of_each_instance_has_an_id_and_an_address_of_its_own() -> None:
    first = INTEGRATION.configured("default", {"api_key": SECRET})
    european = {"api_key": SECRET, "base_url": "https://api.eu.pagerduty.com", "account": "acme"}
    second = INTEGRATION.configured("eu", european)
    assert (first.source.id, first.source.title) == ("pagerduty", "PagerDuty")
    assert (second.source.id, second.source.title) == ("pagerduty-eu", "PagerDuty (eu)")
    assert first.base_url == "https://api.pagerduty.com"
    assert second.base_url == "https://api.eu.pagerduty.com"
    assert (first.at_once, first.calls_at_once) == (1, 1)


def test_the_source_is_one_that_could_be_read_from_a_document() -> None:
    source = INTEGRATION.configured("default", {"api_key": SECRET}).source
    assert datasource.parse_source(source.render()).render() == source.render()
