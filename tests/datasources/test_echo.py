"""A secret that a host answers with is known again, however it is encoded."""

import base64
import html
import json
import re
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from factbook.datasources.custom.sources import SourceConnection

VISIBLE = "".join(map(chr, range(0x21, 0x7F)))
SECRETS = st.text(VISIBLE, min_size=8, max_size=40)
OWN_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}|\\(u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)|&[#A-Za-z0-9]+;?")
Encoding = Callable[[str], str]


def numbered(form: str) -> Encoding:
    """Every character by its code."""
    return lambda text: "".join(form.format(ord(char)) for char in text)


ESCAPES: dict[str, Encoding] = {
    "none": str,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "JSON with slashes": lambda text: json.dumps(text)[1:-1].replace("/", r"\/"),
    "JSON by code": numbered("\\u{:04x}"),
    "JSON by code, upper case": numbered("\\u{:04X}"),
    "HTML": html.escape,
    "HTML by number": numbered("&#{};"),
    "HTML by hexadecimal number": numbered("&#x{:X};"),
    "address": lambda text: quote(text, safe=""),
    "address, every character": numbered("%{:02x}"),
    "address, twice": lambda text: quote(quote(text, safe=""), safe=""),
}


@st.composite
def encoded(draw: st.DrawFn, secret: str) -> str:
    """The secret in a way that hosts show what they were sent, or that hides it from them."""
    kind = draw(st.sampled_from(["plain", "hex", "HEX", "base64", "url-safe base64"]))
    text = secret
    if kind.lower() == "hex":
        text = secret.encode().hex()
        text = text.upper() if kind == "HEX" else text
    elif kind != "plain":
        before, behind = draw(st.binary(max_size=5)), draw(st.binary(max_size=5))
        raw = before + secret.encode() + behind
        made = base64.urlsafe_b64encode(raw) if "url" in kind else base64.b64encode(raw)
        text = made.decode()
        text = text.rstrip("=") if draw(st.booleans()) else text
    if draw(st.booleans()):
        text = text[::-1]
    for place in sorted(draw(st.sets(st.integers(0, len(text)), max_size=4)), reverse=True):
        text = text[:place] + draw(st.sampled_from([" ", "\n", "\r\n", "\t"])) + text[place:]
    return ESCAPES[draw(st.sampled_from(sorted(ESCAPES)))](text)


def connection(value: str) -> SourceConnection:
    return SourceConnection(base_url="https://ci.test", headers={"x-token": value})


def is_long(secret: str) -> bool:
    """Not only by escapes of its own, without which it may be a word of the answer."""
    return all(len(OWN_ESCAPE.sub("", text)) >= 8 for text in (secret, secret[::-1]))


@pytest.mark.slow
@given(st.data(), SECRETS)
def test_no_encoding_brings_a_secret_through(data: st.DataObject, secret: str) -> None:
    assume(is_long(secret))
    body = f'{{"you sent": "{data.draw(encoded(secret))}", "ok": true}}'
    assert connection(secret).is_repeated(body.encode())
    assert connection(f"Bearer {secret}").is_repeated(body.encode())


@pytest.mark.slow
@given(st.data(), st.text(VISIBLE, max_size=20), SECRETS)
def test_the_password_of_basic_is_a_secret_of_its_own(
    data: st.DataObject, user: str, password: str
) -> None:
    assume(":" not in user)
    assume(is_long(password))
    sent = base64.b64encode(f"{user}:{password}".encode()).decode()
    for secret in (password, f"{user}:{password}"):
        body = data.draw(encoded(secret))
        assert connection(f"Basic {sent}").is_repeated(body.encode())


def test_an_encoded_secret_is_found_in_the_middle_of_an_answer(subtests: pytest.Subtests) -> None:
    bodies = [
        "ZmctMDEyMzQ1Njc4OS1hYmNkZWY",  # in the middle of other bytes
        "fedcba-9876543210-gf",
        "66672D303132333435363738392D616263646566",
        "FG-0123456789-ABCDEF",
        "fg-0123\\n456789-\\r\\nabcdef",
        "f\0g\0-\0" + "0\x001\x002\x003\x004\x005\x006\x007\x008\x009\0-\0a\0b\0c\0d\0e\0f\0",
    ]
    for body in bodies:
        with subtests.test(body=body):
            found = connection("token fg-0123456789-abcdef")
            assert found.is_repeated(f"<p>{body}</p>".encode())
            assert not found.is_repeated(b"<p>fg-01234 56789-bcdef</p>")


def test_what_only_resembles_a_secret_is_no_secret() -> None:
    user = base64.b64encode(b"factbook-reader:0123456789abcdef").decode()
    headers = {"authorization": f"Basic {user}", "x-team": "platform-team"}
    shop = SourceConnection(base_url="https://ci.test", headers=headers)
    for body in (
        b'{"user": "factbook-reader", "team": "Platform-Team", "basic": true}',
        b'{"text": "\\u00e4\\n100 % &amp; more", "digits": "0123456789"}',
        b"",
    ):
        assert not shop.is_repeated(body)
    assert shop.is_repeated(b'{"team": "platform-team"}')
