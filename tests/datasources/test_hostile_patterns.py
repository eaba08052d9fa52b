"""Patterns that would take long to compile, addresses that climb, and secrets that come back."""

import pytest

from factbook.datasources.custom import extraction
from factbook.datasources.custom.sources import SourceConnection
from factbook.errors import InputError, InvalidItemsError
from factbook.outbound.client import build_address
from tests.datasources.asking import definition


def test_a_pattern_that_takes_long_to_compile_is_refused(subtests: pytest.Subtests) -> None:
    texts = [
        "(" * 60 + "a" + "{1,9})" * 60,
        "(?:" * 6 + "a{20}" * 150 + "){9}" * 6,
        "[)]" * 14 + "(?:" * 14 + "a" + "){2}" * 14,
        "a{60000}" * 100,
        "a{" + "9" * 500 + "}",
        r"(?:\p{L}{1,100}){1,9}" * 40,
    ]
    message = "invalid repetition size|repeats more than|too large|longer than 1000"
    for text in texts:
        with subtests.test(text=text), pytest.raises(InputError, match=message):
            extraction.compile_pattern(text, "string")


@pytest.mark.parametrize(
    "text",
    [
        r"v(\d+)\.(\d+)\.(\d+)(?:-([a-z0-9]+))?(?:\+([a-z]+))?",
        r"^\s*(?:(?:export\s+)?VERSION)\s*=\s*\"([^\"]{1,50})\"",
        r"(?:\(\+\{)" * 20,
        r"\p{Lu}\p{L}{2,20}",
    ],
)
def test_a_pattern_of_daily_use_is_taken(text: str) -> None:
    assert extraction.compile_pattern(text, "boolean").of("nothing of it") is False


def test_many_patterns_of_daily_use_are_taken_together() -> None:
    daily = ("string", r"/^version:\s*(\d+)\.(\d+)(?:-(\w+))?$/")
    made = definition(path="/a", facts={f"f{number}": daily for number in range(200)})
    assert len(made.extractors) == 200


@pytest.mark.parametrize(
    "target", ["/..;/admin", "/a/..;x=1/admin", "/a/%2e%2e%3b/b", "/a/%5c..%5cb"]
)
def test_an_address_that_some_servers_read_as_climbing_is_not_asked(target: str) -> None:
    assert build_address("https://ci.test/api", target, {}) is None


@pytest.mark.parametrize("name", ["X-Original-URL", "x-rewrite-url"])
def test_a_header_that_names_another_path_is_refused(name: str) -> None:
    with pytest.raises(InvalidItemsError, match="is not a header that a source can set"):
        definition(path="/a", headers={name: "/admin"})


def test_a_secret_is_known_again_however_it_is_escaped(subtests: pytest.Subtests) -> None:
    bodies = [
        b'{"authorization": "Bearer ab+cd/ef<gh=="}',
        rb'{"authorization": "Bearer ab+cd\/ef<gh=="}',
        rb'{"authorization": "Bearer ab\u002Bcd/ef<gh=="}',
        rb'{"authorization": "Bearer ab\u002bcd\u002fef\u003cgh=="}',
        b"<b>ab+cd/ef&lt;gh</b>",
        b"/next?token=ab%2Bcd%2Fef%3Cgh%3D%3D",
        b'{"cookies": {"session": "0123456789"}}',
    ]
    for body in bodies:
        with subtests.test(body=body):
            headers = {
                "authorization": "Bearer ab+cd/ef<gh==",
                "cookie": "session=0123456789; lang=en",
            }
            connection = SourceConnection(base_url="https://ci.test", headers=headers)
            assert connection.is_repeated(body)
            assert not connection.is_repeated(b'{"authorization": "Bearer", "session": true}')
