"""Which addresses OAuth clients may be answered at."""

import pytest

from factbook.auth.oauth import clients


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
        *(
            "javascript:alert(1)",
            "javascript://a/%0aalert(1)",
            "JavaScript:alert(1)",
            "data:text/html,x",
        ),
        *("file:///etc/passwd", "vbscript:x", "blob:https://a.example/1", "about:blank"),
        *("ms-msdt:/id", "search-ms:query=x", "view-source:https://a.example/", "intent://a#x"),
        *("smb://a.example/x", "chrome://settings", "x-apple.systempreferences:a"),
        *("cursor:", "cursor:?a=1", "//a.example/cb", "cursor://a/cb#x", "cursor://a\nb/cb"),
        *("localhost:8080/cb", "my.host:8080/cb", "c:/windows/x", "jnlp://a/b", "x-man-page://ls"),
        *("Cursor://a/cb", "cursor://me@a/cb", "1cursor://a/cb", "c\\ursor://a/cb"),
    ]
    for uri in cases:
        with subtests.test(uri):
            assert not clients.is_acceptable_redirect(uri)
            assert not clients.is_loopback_redirect(uri)


def test_a_plain_address_is_accepted_and_shown_as_browsers_show_it() -> None:
    hosts = {
        "https://a.example/cb": "a.example",
        "https://A.example:443/cb": "a.example",
        "https://a.example:8443/cb?x=1": "a.example:8443",
        "http://127.0.0.1:3000/cb": "127.0.0.1:3000",
        "http://[::1]:3000/cb": "[::1]:3000",
        "http://localhost/cb": "localhost",
        "cursor://anysphere.cursor-mcp/oauth/callback": "cursor://anysphere.cursor-mcp",
        "vscode://vscode.github-authentication/did": "vscode://vscode.github-authentication",
        "com.example.app:/callback": "com.example.app:",
        "zed://oauth": "zed://oauth",
    }
    assert {
        uri: clients.extract_redirect_host(uri)
        for uri in hosts
        if clients.is_acceptable_redirect(uri)
    } == hosts


def test_an_empty_path_on_loopback_is_a_slash_as_it_is_to_browsers() -> None:
    assert clients.matches_redirect("http://127.0.0.1:33418", "http://127.0.0.1:59656/")
    assert not clients.matches_redirect("http://127.0.0.1:33418", "http://127.0.0.1:59656/x")
    assert not clients.matches_redirect("https://agent.example.com", "https://agent.example.com/")


def test_an_address_of_a_programs_own_scheme_matches_itself_alone() -> None:
    own = "cursor://anysphere.cursor-mcp/oauth/callback"
    assert clients.matches_redirect(own, own)
    for other in (f"{own}/", f"{own}?a=1", "cursor://anysphere.cursor-mcp:80/oauth/callback"):
        assert not clients.matches_redirect(own, other)
