"""Which addresses OAuth clients may be answered at."""

import pytest

from factbook.auth.oauth import redirects


def test_an_address_that_parsers_read_differently_is_refused(subtests: pytest.Subtests) -> None:
    cases = [
        "https://evil.example\\@ok.example/",
        "https://ok.example@evil.example/",
        "https://@evil.example/",
        "https://%65vil.example/",
        "https:evil.example/",
        "https:///evil.example/",
        "https://0x7f.1/",
        "http://127.1/",
        "http://2130706433/",
        "https://a.example:99999/",
        "https://ev\til.example/",
    ]
    for uri in cases:
        with subtests.test(uri):
            assert not redirects.is_acceptable(uri)
            assert not redirects.is_loopback(uri)


def test_a_plain_address_is_accepted_and_shown_as_browsers_show_it() -> None:
    hosts = {
        "https://a.example/cb": "a.example",
        "https://A.example:443/cb": "a.example",
        "https://a.example:8443/cb?x=1": "a.example:8443",
        "http://127.0.0.1:3000/cb": "127.0.0.1:3000",
        "http://[::1]:3000/cb": "[::1]:3000",
        "http://localhost/cb": "localhost",
    }
    assert {uri: redirects.host(uri) for uri in hosts if redirects.is_acceptable(uri)} == hosts
