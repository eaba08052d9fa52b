"""The settings of one Datadog."""

from typing import Any

import pytest

from factbook.errors import ConfigurationError
from factbook.facts import datasource
from factbook.integrations.datadog import INTEGRATION, SITES, DatadogOptions
from factbook.settings.option_tables import read_options
from tests.integrations.datadog.asking import KEYS

BOTH = "api_key and application_key are needed, both"
ADDRESS = "base_url has to be like https://host/path"


def test_the_address_follows_from_the_site_unless_it_is_given(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "https://api.datadoghq.com"),
        *(({"site": site}, f"https://api.{site}") for site in SITES),
        ({"base_url": "http://127.0.0.1:8126/proxy/"}, "http://127.0.0.1:8126/proxy"),
        (
            {"site": "dd.example.com", "base_url": "https://api.dd.example.com"},
            "https://api.dd.example.com",
        ),
    ]
    for table, address in cases:
        with subtests.test(table=table):
            assert (
                read_options("datadog", "default", KEYS | table, DatadogOptions).address == address
            )
            assert INTEGRATION.configured("default", KEYS | table).base_url == address


def test_a_mistake_is_named_without_a_value(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, BOTH),
        ({"api_key": KEYS["api_key"]}, BOTH),
        ({"application_key": KEYS["application_key"]}, BOTH),
        (
            KEYS | {"site": "evil.example.net"},
            f"without base_url site has to be one of {', '.join(SITES)}",
        ),
        (
            KEYS | {"site": "https://datadoghq.eu", "base_url": "https://api.datadoghq.eu"},
            "site has to be a host name in lower case, such as datadoghq.eu",
        ),
        (KEYS | {"base_url": "ftp://api.datadoghq.com"}, ADDRESS),
        (KEYS | {"base_url": "https://api.datadoghq.com/#part"}, ADDRESS),
        (KEYS | {"base_url": "https://api.datadoghq.com/x?"}, ADDRESS),
        (KEYS | {"base_url": "https://api.datadoghq.com/a b"}, ADDRESS),
        (KEYS | {"base_url": "https://api.datadoghq.com/\r\nx-a: b"}, ADDRESS),
        (KEYS | {"base_url": "https://name:password@api.datadoghq.com"}, ADDRESS),
        (KEYS | {"base_url": "https://api.datadoghq.com/../x?y=1"}, ADDRESS),
        (KEYS | {"tag_key": "Service:"}, "tag_key has to be a key in lower case, such as service"),
        (KEYS | {"apikey": "x"}, "Object contains unknown field `apikey` (did you mean api_key?)"),
    ]
    for table, message in cases:
        with subtests.test(table=table):
            with pytest.raises(ConfigurationError) as raised:
                INTEGRATION.configured("work", table)
            assert raised.value.message == f"integrations.datadog.work: {message}."


def test_no_secret_is_shown() -> None:
    integration = INTEGRATION.configured("default", KEYS)
    shown = f"{integration!r} {integration.source.render()} {DatadogOptions(**KEYS)!r}"
    assert not [secret for secret in KEYS.values() if secret in shown]


def test_the_source_is_one_that_could_be_read_from_a_document() -> None:
    source = INTEGRATION.configured("eu", KEYS | {"site": "datadoghq.eu"}).source
    assert (source.id, source.title) == ("datadog-eu", "Datadog (eu)")
    assert datasource.parse_source(source.render()).render() == source.render()
