"""The settings of one GitHub."""

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)

from factbook.errors import ConfigurationError
from factbook.facts import datasource
from factbook.integrations.github import INTEGRATION
from factbook.integrations.github.api import GithubOptions
from factbook.settings.option_tables import read_options

SECRET = "ghp_a_secret_of_tests"


@pytest.mark.parametrize(
    ("table", "rest", "graphql"),
    [
        ({}, "https://api.github.com", "https://api.github.com/graphql"),
        (
            {"host": "github.example.com"},
            "https://github.example.com/api/v3",
            "https://github.example.com/api/graphql",
        ),
        (
            {"host": "acme.ghe.com"},
            "https://api.acme.ghe.com",
            "https://api.acme.ghe.com/graphql",
        ),
        (
            {"host": "github.example.com", "api_url": "https://proxy.example.com/github/"},
            "https://proxy.example.com/github",
            "https://proxy.example.com/github/graphql",
        ),
    ],
)
def test_addresses_follow_from_the_host(table: dict[str, Any], rest: str, graphql: str) -> None:
    options = read_options("github", "default", {"token": SECRET, **table}, GithubOptions)
    assert (options.rest, options.graphql) == (rest, graphql)


def make_encrypted_key(form: PrivateFormat) -> str:
    """A private key in PEM that needs a passphrase."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, form, BestAvailableEncryption(b"passphrase")).decode()


def test_a_mistake_is_named_without_a_value(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "integrations.github.work: either a token or an app is needed."),
        (
            {"token": SECRET, "app_id": "1"},
            "integrations.github.work: either a token or an app is needed.",
        ),
        (
            {"app_id": "1", "installation_id": "2"},
            "integrations.github.work: an app needs app_id, installation_id and private_key.",
        ),
        *(
            (
                {"app_id": "1", "installation_id": "2", "private_key": make_encrypted_key(form)},
                "integrations.github.work: private_key is encrypted; use the output of "
                "`openssl rsa -in app.pem` instead.",
            )
            for form in (PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL)
        ),
        (
            {"token": SECRET, "api_url": "ftp://github.com"},
            "integrations.github.work: api_url has to begin with https://.",
        ),
        (
            {"token": SECRET, "graphql_url": "https://evil.example.com/graphql"},
            "integrations.github.work: graphql_url has to be on the same host as api_url.",
        ),
        (
            {"token": SECRET, "host": "https://github.com"},
            "integrations.github.work: host has to be a host name in lower case, such as "
            "github.example.com.",
        ),
        (
            {"tokn": SECRET},
            "integrations.github.work: Object contains unknown field `tokn` (did you mean token?).",
        ),
        (
            {"token": [SECRET]},
            "integrations.github.work: Expected text, got a list - at `$.token`.",
        ),
    ]
    for table, message in cases:
        with subtests.test(table=table):
            with pytest.raises(ConfigurationError) as raised:
                INTEGRATION.configured("work", table)
            assert raised.value.message == message


def test_no_secret_is_shown() -> None:
    integration = INTEGRATION.configured("default", {"token": SECRET})
    options = GithubOptions(app_id="1", installation_id="2", private_key=SECRET)
    assert SECRET not in f"{integration!r} {integration.source.render()} {options!r}"


def test_the_source_of_each_instance_has_an_id_of_its_own() -> None:
    first = INTEGRATION.configured("default", {"token": SECRET}).source
    second = INTEGRATION.configured("work", {"token": SECRET, "host": "github.example.com"}).source
    assert (first.id, first.title) == ("github", "GitHub")
    assert (second.id, second.title) == ("github-work", "GitHub (work)")
    assert second.render()["handlerDefinition"] == {
        "type": "builtin",
        "config": {"id": "github-work", "builtinId": "github"},
    }


def test_the_source_is_one_that_could_be_read_from_a_document() -> None:
    source = INTEGRATION.configured("default", {"token": SECRET}).source
    assert datasource.parse_source(source.render()).render() == source.render()
