"""The settings of one GitLab."""

from typing import Any

import pytest

from factbook.errors import ConfigurationError
from factbook.facts import datasource
from factbook.integrations.gitlab import INTEGRATION
from factbook.integrations.gitlab.api import GitlabOptions
from factbook.settings.option_tables import read_options

SECRET = "glpat-a-secret-of-tests"


@pytest.mark.parametrize(
    ("table", "rest", "graphql"),
    [
        ({}, "https://gitlab.com/api/v4", "https://gitlab.com/api/graphql"),
        (
            {"host": "gitlab.example.com:8443"},
            "https://gitlab.example.com:8443/api/v4",
            "https://gitlab.example.com:8443/api/graphql",
        ),
        (
            {"host": "example.com", "api_url": "http://10.0.0.7/gitlab/api/v4/"},
            "http://10.0.0.7/gitlab/api/v4",
            "http://10.0.0.7/gitlab/api/graphql",
        ),
    ],
)
def test_addresses_follow_from_the_host(table: dict[str, Any], rest: str, graphql: str) -> None:
    options = read_options("gitlab", "default", {"token": SECRET, **table}, GitlabOptions)
    assert (options.rest, options.graphql) == (rest, graphql)


def test_a_mistake_is_named_without_a_value(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "a token is needed."),
        ({"token": SECRET, "api_url": "ftp://x/v4"}, "api_url has to begin with https://."),
        ({"token": SECRET, "api_url": "https://x/api/v3"}, "api_url has to end with /v4."),
        (
            {"token": SECRET, "host": "https://gitlab.com"},
            "host has to be a host name in lower case, such as gitlab.example.com.",
        ),
        ({"tokn": SECRET}, "Object contains unknown field `tokn` (did you mean token?)."),
        ({"token": [SECRET]}, "Expected text, got a list - at `$.token`."),
    ]
    for table, message in cases:
        with subtests.test(table=table):
            with pytest.raises(ConfigurationError) as raised:
                INTEGRATION.configured("work", table)
            assert raised.value.message == f"integrations.gitlab.work: {message}"


def test_no_secret_is_shown() -> None:
    integration = INTEGRATION.configured("default", {"token": SECRET})
    shown = f"{integration!r} {integration.source.render()} {GitlabOptions(token=SECRET)!r}"
    assert SECRET not in shown


def test_the_source_of_each_instance_has_an_id_of_its_own() -> None:
    first = INTEGRATION.configured("default", {"token": SECRET}).source
    second = INTEGRATION.configured("work", {"token": SECRET, "host": "gitlab.example.com"}).source
    assert (first.id, first.title) == ("gitlab", "GitLab")
    assert (second.id, second.title) == ("gitlab-work", "GitLab (work)")
    assert "metadata.annotations.gitlab.example.com/project-slug" in str(second.entity_filter)
    assert datasource.parse_source(first.render()).render() == first.render()
