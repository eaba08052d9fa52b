"""Parsers of headers, cookies and forms, of requests and of answers."""

import asyncio
from typing import Any

import httpx2

from factbook.api import catalog, mcp, parameters
from factbook.api.catalog import AfterCursor, QueryCursor
from factbook.api.parameters import Parameter
from factbook.auth.oidc import identity
from factbook.http.admission import Hosts
from factbook.http.requests import Proxies, Request
from factbook.outbound.client import (
    Governor,
    build_address,
    find_allowance,
    find_credential_expiry,
    find_retry_time,
    resolve_redirect,
)
from factbook.outbound.network import Guard, normalize_literal_address
from factbook.outbound.outcomes import Answer, HostReply, Outcome
from factbook.settings import Settings
from factbook.web import pages
from tests.fuzz.promises import check_told, lines, text, tried
from tests.fuzz.target import Target
from tests.service import NOON

_BASE = "https://git.example.com:8443/api/v4"
_KEY = b"a key of tests, long enough to be one"
_DAY = 86_400_000
_SETTINGS = Settings(
    allowed_hosts=["factbook.example.com"],
    allowed_origins=["https://portal.example.com"],
    trusted_proxies=["127.0.0.0/8", "::1"],
)
_LIMITS = ("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "retry-after", "date")


def request(data: bytes = b"", *, query: bytes = b"", body: bytes = b"", path: str = "") -> Request:
    """A request whose headers are the lines of the data, as a server reads them."""
    pairs = [line.partition(b":") for line in data.split(b"\n")]
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "path_params": dict.fromkeys(parameters.PATH, path),
        "query_string": query,
        "headers": [(name.strip().lower(), value.strip()) for name, _, value in pairs],
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    return Request(scope, receive)


def of_requests(data: bytes) -> None:
    """Whom a request comes from and addresses, and its cookies."""
    asked = request(data)
    forwarded = asked.header(b"x-forwarded-for")
    assert isinstance(Proxies(_SETTINGS).client("127.0.0.1", forwarded), str)
    hosts = Hosts(_SETTINGS)
    tried(hosts.check, asked.headers.get(b"host"), asked.headers.get(b"origin"))
    for name in (pages.SESSION_COOKIE, pages.NOTICE_COOKIE, pages.ATTEMPT_COOKIE):
        value = pages.read_cookie(asked, name, secure=False) or ""
        pages.unpack_cookie_text(value)
        assert identity.open_attempt(value, _KEY, NOON) is None or value
    tried(parameters.IF_MATCH.of, asked)


def of_answers(data: bytes) -> None:
    """Limits, links and times in what a host answers: none leads further than a day."""
    pairs = (line.partition(":") for line in text(data).split("\n"))
    found = {name.strip().lower(): value.strip() for name, _, value in pairs}
    allowance = find_allowance(found, NOON)
    if allowance and allowance.reset_at is not None:
        assert NOON <= allowance.reset_at <= NOON + _DAY
    moment = find_retry_time(found.get("retry-after", ""), NOON)
    assert moment is None or NOON <= moment <= NOON + _DAY
    find_credential_expiry(found)
    for status in (200, 403, 503):
        governor = Governor(clock=lambda: NOON)
        until = governor.learn("", HostReply(status, found), refused=status == 403)
        assert until is None or until >= NOON
    answer = Answer(Outcome.OK, 200, found)
    for relation in ("next", "last"):
        link = answer.link(relation)
        assert link is None or isinstance(link, str)


def of_addresses(data: bytes) -> None:
    """No target, redirect or spelling of a host leads away from the origin."""
    given, other = lines(data, 2)
    for found in (
        build_address(_BASE, given, {}),
        resolve_redirect(_BASE, f"{_BASE}/{other}", given),
    ):
        if found is None:
            continue
        try:
            read = httpx2.URL(found)
        except httpx2.InvalidURL:
            continue  # which the sender refuses
        assert (read.scheme, read.host, read.port) == ("https", "git.example.com", 8443), found
        assert not read.userinfo, found
    guard = Guard()
    whole = normalize_literal_address(given)
    assert whole is None or guard.allows(whole) in {True, False}


def of_cursors(data: bytes) -> None:
    """A cursor is what it was made of, and anything else is refused."""
    given = text(data)
    for type_ in (QueryCursor, AfterCursor):
        found = tried(catalog.decode_cursor, given, type_, "cursor")
        if found is not None:
            again = catalog.encode_cursor(found)
            assert again.isalnum(), again
            assert catalog.decode_cursor(again, type_, "cursor") == found
    text_ = pages.pack_cookie_text(given)
    assert pages.unpack_cookie_text(text_) == given


def of_queries(data: bytes) -> None:
    """Every parameter of a query, path or header is read or refused."""
    asked = request(b"", query=data, path=text(data))
    for parameter in _parameters():
        named = request(
            parameter.name.encode() + b":" + data.replace(b"\n", b" "),
            query=parameter.name.encode() + b"=" + data.replace(b"&", b"%26"),
            path=text(data),
        )
        for one in (asked, named):
            tried(parameter.of, one)


def _parameters() -> list[Parameter[Any]]:
    declared = [one for one in vars(parameters).values() if isinstance(one, Parameter)]
    return [*declared, *parameters.PATH.values()]


def of_forms(data: bytes) -> None:
    """A form is read, and every field of it is a text."""
    sent = request(b"content-type: application/x-www-form-urlencoded", body=data)
    form = tried(lambda: asyncio.run(pages.read_sent_form(sent)))
    if form is not None:
        assert all(isinstance(form.one(name), str) for name in form.values())


def of_messages(data: bytes) -> None:
    """A message of JSON-RPC is read, or refused in its own form."""
    try:
        found = mcp.parse_message(data)
    except mcp.RpcError as error:
        check_told(error)
        return
    assert found.jsonrpc == "2.0"
    if isinstance(found.id, int | str):
        shown = mcp.parse_message(mcp.wrap_result(found.id, '{},"method":"x"').encode())
        assert shown.id == found.id


def of_batches(data: bytes) -> None:
    """A batch is a few messages, or refused in its own form."""
    try:
        found = mcp.parse_batch(data)
    except mcp.RpcError as error:
        check_told(error)
        return
    assert 0 < len(found) <= 20
    for message in found:
        assert mcp.build_batch_refusal(message, "x").status in {200, 400}


TARGETS = (
    Target("request-headers", of_requests, ("web.pages.read_cookie", "web.pages.unpack_cookie_text",
        "auth.oidc.identity.open_attempt"), share=40),
    Target("answer-headers", of_answers, (), share=60),
    Target("addresses", of_addresses, (), share=60),
    Target("cursors", of_cursors, ("api.catalog.decode_cursor",), share=40),
    Target("query", of_queries, (), share=20),
    Target("form", of_forms, ("web.pages.read_sent_form",), share=10),
    Target("jsonrpc", of_messages, ("api.mcp.parse_message",), share=60),
    Target("batches", of_batches, ("api.mcp.parse_batch",), share=60),
)  # fmt: skip
