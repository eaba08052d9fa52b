"""Which texts are absolute URLs; tests/contracts compares it with `new URL`."""

import pytest

from factbook.catalog.validation import is_absolute_url


def test_an_absolute_url_has_a_scheme_and_a_sound_host() -> None:
    texts = [
        "https://example.com",
        " HTTPS://user:word@example.com:443/a b?c#d\n",
        "https:example.com",
        "http:\\\\example.com",
        "http://127.0.0.1/",
        "http://0x7f.1/",
        "http://256.example/",
        "http://[::1]:80/",
        "https://m\u00fcnchen.example/",
        "https://a%2Db/",
        "https://xn--mnchen-3ya.example/",
        "mailto:someone",
        "javascript:x",
        "file:",
        "file:///c:/a",
        f"file:///{'ä' * 3_000}",
        "file://c|/a",
        "foo://",
        "ht\ntp://a",
        "x-y+z.1:",
        "https://\u05d0.example/",
        "https://a/" + "\u0301\u0316" * 500_000,
        "javascript:" + "\u0301" * 5_000,
    ]
    assert [text for text in texts if not is_absolute_url(text)] == []


@pytest.mark.slow
def test_anything_else_is_none() -> None:
    texts = [
        "",
        "foo",
        "//example.com",
        "/a",
        ":",
        "1a:b",
        "https://",
        "https:///?q",
        "http://a b/",
        "http://a%20b/",
        "http://%zz/",
        "http://a:65536/",
        "http://a:8x/",
        "http://:80/",
        "http://me@/",
        "http://256.0.0.1/",
        "http://1.2.3.4.5/",
        "http://0x1ffffffff/",
        "http://08.0.0.1/",
        "http://[::1/",
        "http://[fe80::1%25eth0]/",
        "http://\u00ad/",
        "http://\ufffd/",
        "foo://a b/",
        "foo://me@",
        "file://a:80/",
        "http://a:" + "9" * 5000,
        "http://a" + "\u0301\u0316" * 500_000,
        "http://xn--",
        "http://xn--a/",
        "http://xn--" + "a" * 1_000_000,
        "http:/\t/a" + "\u0301\u0316" * 500_000,
        "http://me@a" + "%CC%81%CC%96" * 500_000,
        "https://\u0717\u1e61/",
        "https://\ud800/",
    ]
    assert [text for text in texts if is_absolute_url(text)] == []
