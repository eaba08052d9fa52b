"""The settings of one Snyk."""

from typing import Any

import pytest

from factbook.errors import ConfigurationError
from factbook.facts import datasource
from factbook.integrations.snyk import INTEGRATION, SnykOptions
from factbook.settings.option_tables import read_options
from tests.integrations.snyk.asking import ACME, KEY, OTHER

GOOD: dict[str, Any] = {"token": KEY, "organizations": [ACME]}


def test_a_mistake_is_named_without_a_value(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"token": ""}, "a token is needed."),
        ({"organizations": []}, "organizations has to name at least one organization."),
        (
            {"organizations": [ACME, "acme"]},
            "organizations has to be of ids, such as those in Snyk's settings.",
        ),
        ({"base_url": "api.eu.snyk.io"}, "base_url has to begin with https://."),
        ({"version": "latest"}, "version has to be a date such as 2024-10-15."),
        ({"tokn": KEY}, "Object contains unknown field `tokn` (did you mean token?)."),
        ({"token": [KEY]}, "Expected text, got a list - at `$.token`."),
    ]
    for table, message in cases:
        with subtests.test(table=table):
            with pytest.raises(ConfigurationError) as raised:
                INTEGRATION.configured("work", GOOD | table)
            assert raised.value.message == f"integrations.snyk.work: {message}"


def test_organizations_are_ids_that_may_have_a_name() -> None:
    given = {"token": KEY, "organizations": f"Platform={ACME.upper()}, {OTHER}"}
    options = read_options("snyk", "default", given, SnykOptions)
    assert options.ids == (ACME, OTHER)
    assert options.names == {"platform": ACME}


def test_no_secret_is_shown() -> None:
    integration = INTEGRATION.configured("default", GOOD)
    assert KEY not in f"{integration!r} {integration.source.render()} {SnykOptions(**GOOD)!r}"


def test_the_source_of_each_instance_has_an_id_and_can_be_read_from_a_document() -> None:
    region = {"base_url": "https://api.eu.snyk.io/rest"}
    first = INTEGRATION.configured("default", GOOD).source
    second = INTEGRATION.configured("eu", GOOD | region)
    assert (first.id, first.title) == ("snyk", "Snyk")
    assert (second.source.id, second.source.title) == ("snyk-eu", "Snyk (eu)")
    assert second.base_url == "https://api.eu.snyk.io/rest"
    assert datasource.parse_source(first.render()).render() == first.render()
