"""What a table of the settings has to say, and that mistakes are told without a value."""

from typing import Any

import msgspec
import pytest

from factbook.errors import ConfigurationError
from factbook.facts import datasource
from factbook.integrations.gitea import INTEGRATION
from factbook.integrations.gitea.api import GiteaOptions

SECRET = "a-secret-of-tests"
HOST = "git.example.com"


@pytest.mark.parametrize(
    ("table", "rest", "slug"),
    [
        ({}, "https://git.example.com/api/v1", "git.example.com/project-slug"),
        ({"host": "gitea.com"}, "https://gitea.com/api/v1", "gitea.com/project-slug"),
        ({"host": "a:3000"}, "https://a:3000/api/v1", "a/project-slug"),
        (
            {"api_url": "http://git.internal/code/api/v1/"},
            "http://git.internal/code/api/v1",
            "git.example.com/project-slug",
        ),
    ],
)
def test_the_address_and_the_annotation_follow_from_the_host(
    table: dict[str, Any], rest: str, slug: str
) -> None:
    options = msgspec.convert({"host": HOST, "token": SECRET} | table, GiteaOptions)
    assert (options.rest, options.slug) == (rest, slug)
    assert rest.startswith(options.origin)


def test_a_mistake_is_named_without_a_value(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"host": ""}, "a host is needed."),
        (
            {"host": "https://git.example.com"},
            "host has to be a host name in lower case, such as git.example.com.",
        ),
        ({"token": ""}, "a token is needed."),
        ({"api_url": "ftp://git.example.com"}, "api_url has to begin with https://."),
        ({"tokn": SECRET}, "Object contains unknown field `tokn` (did you mean token?)."),
        ({"token": [SECRET]}, "Expected text, got a list - at `$.token`."),
    ]
    for table, message in cases:
        with subtests.test(table=table):
            with pytest.raises(ConfigurationError) as raised:
                INTEGRATION.configured("work", {"host": HOST, "token": SECRET} | table)
            assert raised.value.message == f"integrations.gitea.work: {message}"


def test_no_secret_is_shown_and_the_source_could_be_read_from_a_document() -> None:
    table: dict[str, Any] = {"host": HOST, "token": SECRET}
    integration = INTEGRATION.configured("work", table)
    source = integration.source
    assert SECRET not in f"{integration!r} {source.render()} {GiteaOptions(**table)!r}"
    assert (source.id, source.title) == ("gitea-work", "Gitea or Forgejo (work)")
    assert INTEGRATION.configured("default", table).source.id == "gitea"
    assert datasource.parse_source(source.render()).render() == source.render()
