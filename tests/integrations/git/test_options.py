"""The settings of one Git host."""

from pathlib import Path
from typing import Any

import pytest

from factbook.errors import ConfigurationError
from factbook.facts import datasource
from factbook.integrations.git import INTEGRATION, GitOptions

SECRET = "glpat_a_secret_of_tests"
HOST = {"host": "git.example.com"}


@pytest.mark.parametrize(
    ("table", "url"),
    [
        ({}, "https://git.example.com"),
        ({"host": "git.example.com:8443"}, "https://git.example.com:8443"),
        ({"base_url": "https://proxy.example.com/git/"}, "https://proxy.example.com/git"),
        ({"base_url": "http://127.0.0.1:3000"}, "http://127.0.0.1:3000"),
    ],
)
def test_the_address_follows_from_the_host(table: dict[str, Any], url: str) -> None:
    assert INTEGRATION.configured("default", HOST | table).base_url == url


def test_a_mistake_is_named_without_a_value(subtests: pytest.Subtests) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"host": None}, "Expected text, got null - at `$.host`."),
        ({"host": "https://x"}, "host has to be a host name in lower case"),
        ({"host": "git.example.com/x"}, "host has to be a host name in lower case"),
        ({"base_url": "ssh://git@x"}, "base_url has to begin with https://."),
        ({"base_url": "ext::sh -c true"}, "base_url has to begin with https://."),
        ({"username": "me"}, "a username needs a token."),
        ({"username": "a:b", "token": SECRET}, "username has a character that cannot be sent."),
        ({"token": f"{SECRET}\nx: y"}, "token has a character that cannot be sent."),
        ({"paths": ["acme", "/"]}, "paths has an empty one."),
        ({"seconds": 241}, "seconds has to be from 1 to 240."),
        ({"megabytes": 0}, "megabytes has to be from 1 to 10000."),
        ({"most_files": 1_000_001}, "most_files has to be from 1 to 1000000."),
        ({"tokn": SECRET}, "Object contains unknown field `tokn` (did you mean token?)."),
    ]
    for table, message in cases:
        with subtests.test(table=table):
            with pytest.raises(ConfigurationError) as raised:
                INTEGRATION.configured("work", HOST | table)
            assert raised.value.message.startswith(f"integrations.git.work: {message}".rstrip("."))
            assert SECRET not in raised.value.message


def test_a_host_is_needed() -> None:
    with pytest.raises(ConfigurationError, match="work: Object missing required field `host`"):
        INTEGRATION.configured("work", {})


@pytest.mark.parametrize("version", [None, "git version 2.36.6", "git version 1.9", "what?"])
def test_git_has_to_be_there_and_able_to_connect_to_a_checked_address(
    version: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if version:
        program = tmp_path / "git"
        program.write_text(f"#!/bin/sh\necho '{version}'\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigurationError, match=r"needs Git 2\.37 or newer on the PATH"):
        INTEGRATION.configured("default", HOST)


def test_no_secret_is_shown() -> None:
    integration = INTEGRATION.configured("default", HOST | {"token": SECRET})
    options = GitOptions(host="git.example.com", username="me", token=SECRET)
    shown = f"{integration!r} {integration.source.render()} {options!r} {integration.collect!r}"
    assert SECRET not in shown


def test_the_source_of_each_instance_has_an_id_of_its_own() -> None:
    first = INTEGRATION.configured("default", HOST).source
    second = INTEGRATION.configured("work", HOST).source
    assert (first.id, first.title) == ("git", "Git")
    assert (second.id, second.title) == ("git-work", "Git (work)")
    assert datasource.parse_source(second.render()).render() == second.render()
