"""Connect an agent: the endpoint, the configuration of each client, and a live check.

The check makes an agent's first requests for a person. The calls pass through the same stack as a
client's, except the network. Their token carries only the permissions that the tools need, never
leaves the process, is valid for a minute at most and is deleted after the last call, which is why
the audit does not mention it.
"""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from factbook import __version__
from factbook.auth import tokens
from factbook.auth.oauth import protocol
from factbook.auth.permissions import CATALOG_READ, SOURCE_READ, TITLES
from factbook.clock import MINUTE
from factbook.errors import NotFoundError
from factbook.http import internal_requests
from factbook.http.client_configs import AGENTS, PATH, READING, VARIABLE, endpoint, is_address
from factbook.http.internal_requests import InternalResponse
from factbook.http.requests import Reply
from factbook.tools import Tool
from factbook.web.site import formats
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

CONNECT_PATH: Final = "/connect"

_PLACEHOLDER = "YOUR_TOKEN"
# What the page offers to choose: a name, its words, and the toolsets.
_CHOICES: Final[tuple[tuple[str, str, Sequence[str]], ...]] = (
    ("", "All tools", ()),
    ("read-only", "Tools that only read", READING),
    ("facts", "Facts", ("facts",)),
    ("checks", "Checks and scorecards", ("checks",)),
)
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
READS: Final = (CATALOG_READ, SOURCE_READ)

_REVISION = "2025-11-25"
_HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "user-agent": f"factbook-check/{__version__}",
}
_MEANINGS = {
    401: "The endpoint did not accept the token of this check.",
    403: "The endpoint refused the call.",
    421: "The endpoint does not answer for this host.",
    429: "Too many calls at once.",
    503: "The service cannot answer right now.",
}


class CheckStep(NamedTuple):
    """One call of the check; `status` is None if it was not made."""

    title: str
    method: str
    is_good: bool = False
    status: int | None = None
    milliseconds: float = 0.0
    words: str = "Not asked, because the call before failed."


class _FailedError(Exception):
    """The endpoint answered something other than a result; the message says what."""


class _Call(NamedTuple):
    title: str
    method: str
    params: dict[str, Any]
    told: Callable[[dict[str, Any]], str]


async def show(visit: PageContext, steps: Sequence[CheckStep] = ()) -> Reply:
    """Page with the configuration of each client."""
    name = visit.query("client") or next(iter(AGENTS))
    agent = AGENTS.get(name)
    if agent is None:
        raise NotFoundError("There is no client of this name here.")
    server, chosen = visit.server, visit.query("tools")
    toolsets = {name: toolsets for name, _, toolsets in _CHOICES}.get(chosen)
    if toolsets is None:
        raise NotFoundError("There is no choice of tools of this name here.")
    is_compact = visit.query("compact") == "yes"
    # An odd name of a host comes from the browser alone, yet belongs into nobody's file.
    url = endpoint(server, toolsets, is_compact=is_compact) if is_address(server) else None
    query = {"tools": chosen, "compact": "yes" if is_compact else ""}
    return visit.page(
        "connect.html",
        url=url,
        path=PATH,
        sign_in_url=protocol.build_resource(server) if url and visit.state.oauth.enabled else None,
        public=visit.state.settings.public_url,
        is_local=_is_local(server),
        clients=[(id_, each.title) for id_, each in AGENTS.items()],
        client=name,
        choices=[(id_, title) for id_, title, _ in _CHOICES],
        chosen=chosen,
        is_compact=is_compact,
        query="".join(f"&{key}={value}" for key, value in query.items() if value),
        agent=agent,
        link=agent.link(url) if url and agent.link else None,
        configuration=agent.render(url, None) if url else "",
        whole=agent.render(url, _PLACEHOLDER) if url else "",
        variable=VARIABLE,
        placeholder=_PLACEHOLDER,
        permissions=[TITLES[each] for each in READS],
        tools=len(offered_tools(visit)),
        steps=steps,
    )


async def check(visit: PageContext) -> Reply:
    """Send the endpoint a client's first requests, and show the answers."""
    return await show(visit, await _checked(visit))


async def back(visit: PageContext) -> Reply:
    """Redirect to the form: a check is started by the form, and its address alone is no page."""
    return visit.redirect(CONNECT_PATH)


def _is_local(server: str) -> bool:
    """True if only this machine can reach the address."""
    try:
        return urlsplit(server).hostname in _LOOPBACK
    except ValueError:  # no address at all
        return False


async def _checked(visit: PageContext) -> list[CheckStep]:
    """Every step: those up to the first failure are done, the others not."""
    if seconds := visit.state.calls.take(visit.person.ref):
        wait = f"Too many calls. Try again in {formats.counted(seconds, 'second')}."
        first, *others = _CALLS
        failed = CheckStep(first.title, first.method, status=429, words=wait)
        return [failed, *(CheckStep(each.title, each.method) for each in others)]
    value = tokens.generate_token()
    id_ = await _token(visit, value)
    try:
        return await _steps(visit, value)
    finally:
        await visit.state.database.write(lambda transaction: tokens.discard_token(transaction, id_))
        visit.state.touched.pop(id_, None)


async def _token(visit: PageContext, value: str) -> str:
    owner = visit.person.ref
    token = await visit.state.database.write(
        lambda transaction: tokens.create_token(
            transaction,
            name="check of the endpoint",
            digest=tokens.hash_token(value, visit.state.token_key),
            owner=owner,
            permissions=frozenset(READS),
            created_by=owner,
            now=visit.now,
            lifetime=MINUTE,
        )
    )
    return token.id


async def _steps(visit: PageContext, token: str) -> list[CheckStep]:
    headers = {**_HEADERS, "host": _host(visit), "authorization": f"Bearer {token}"}
    steps: list[CheckStep] = []
    for number, each in enumerate(_CALLS, 1):
        if steps and not steps[-1].is_good:
            steps.append(CheckStep(each.title, each.method))
            continue
        message = {"jsonrpc": "2.0", "method": each.method, "params": each.params, "id": number}
        started = time.perf_counter()
        answer = await internal_requests.post(
            visit.site.application, PATH, headers, msgspec.json.encode(message), visit.address
        )
        milliseconds = 1000 * (time.perf_counter() - started)
        step = CheckStep(each.title, each.method, True, answer.status, milliseconds)
        try:
            steps.append(step._replace(words=each.told(_result(answer))))
        except _FailedError as error:
            steps.append(step._replace(is_good=False, words=str(error)))
        # As clients do once it is agreed on.
        headers["mcp-protocol-version"] = _REVISION
    return steps


def _host(visit: PageContext) -> str:
    """Host that clients name."""
    public = visit.state.settings.public_url
    if public:
        return urlsplit(public).netloc.rpartition("@")[2]
    return visit.request.header(b"host") or ""


def _result(answer: InternalResponse) -> dict[str, Any]:
    """Result in an answer; raises _FailedError."""
    try:
        body = msgspec.json.decode(answer.body, type=dict[str, Any])
    except msgspec.DecodeError:
        raise _FailedError(f"{_meaning(answer)} The answer is not JSON.") from None
    result = body.get("result")
    if answer.status == 200 and isinstance(result, dict):
        if result.get("isError"):
            raise _FailedError(f"The tool refused: {result['content'][0]['text']}")
        return result
    error = body.get("error")
    told = error.get("message") if isinstance(error, dict) else body.get("error_description")
    raise _FailedError(f"{_meaning(answer)} {told or ''}".rstrip())


def _meaning(answer: InternalResponse) -> str:
    return _MEANINGS.get(answer.status, "The endpoint answered with an error.")


def _greeted(result: dict[str, Any]) -> str:
    server = result["serverInfo"]
    name = server.get("title") or server["name"]
    return f"{name} {server['version']} speaks revision {result['protocolVersion']}."


def _listed(result: dict[str, Any]) -> str:
    return f"{formats.counted(len(result['tools']), 'tool')}."


def _discovered(result: dict[str, Any]) -> str:
    found = result["structuredContent"]
    count = formats.counted(found["totalCount"], "data source")
    return f"{count}, of which {found['customCount']:,} defined by users."


_CALLS = (
    _Call(
        "Handshake",
        "initialize",
        {
            "protocolVersion": _REVISION,
            "capabilities": {},
            "clientInfo": {"name": "factbook-check", "version": __version__},
        },
        _greeted,
    ),
    _Call("List of tools", "tools/list", {}, _listed),
    _Call(
        "A tool call",
        "tools/call",
        {"name": "get-data-source-discovery", "arguments": {"limit": 1}},
        _discovered,
    ),
)


def offered_tools(visit: PageContext) -> dict[str, Tool]:
    """The tools that this person may try: those that only read."""
    return {
        name: tool
        for name, tool in visit.state.every_tool.items()
        if not tool.writes and visit.may(*tool.permissions)
    }


CONNECT: Sequence[PageRoute] = (
    PageRoute("GET", CONNECT_PATH, show, READS),
    PageRoute("GET", f"{CONNECT_PATH}/check", back, READS),
    PageRoute("POST", f"{CONNECT_PATH}/check", check, READS),
)
