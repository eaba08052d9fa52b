"""What a reference to a location means; tests/contracts compares it with the npm package."""

import pytest

from factbook.catalog import validation
from factbook.errors import InputError


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("url:https://a/b", ("url", "https://a/b")),
        (" url : x ", ("url", "x")),
        ("factbook-api:/api/catalog", ("factbook-api", "/api/catalog")),
        ("file:a:b", ("file", "a:b")),
    ],
)
def test_the_first_colon_ends_the_type(text: str, meant: tuple[str, str]) -> None:
    assert validation.parse_location(text) == meant


def test_what_no_location_can_be_is_refused(subtests: pytest.Subtests) -> None:
    cases = [
        ("", "not of the form"),
        ("x", "not of the form"),
        ("url:\u00a0", "not of the form"),
        (":x", "not of the form"),
        ("https://a/b", "write url:https://a/b"),
        ("url:\x01 JAVA\tscript:x", "script"),
    ]
    for text, why in cases:
        with subtests.test(text=text), pytest.raises(InputError, match=why):
            validation.parse_location(text)
