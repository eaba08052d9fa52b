"""Connect an agent: the configuration of each client, a live check, and the tool playground.

The check sends an agent's first requests on behalf of the person. The calls use the same stack as
a client's, except the network. Their token has only the permissions that the tools need, never
leaves the process, expires after a minute and is deleted after the last call, so the audit leaves
it out.
"""

import math
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import urlencode, urlsplit

import msgspec

from factbook import __version__
from factbook.audit.trail import Caller
from factbook.auth import tokens
from factbook.auth.oauth import protocol
from factbook.auth.permissions import CATALOG_READ, SOURCE_READ, TITLES
from factbook.auth.tokens import Grant
from factbook.catalog.store import stored_entities
from factbook.clock import MINUTE
from factbook.errors import NotFoundError, ToolError, UnavailableError
from factbook.facts.schema import REASONS
from factbook.http.client_configs import AGENTS, PATH, READING, VARIABLE, endpoint, is_address
from factbook.http.client_configs import PATH as ENDPOINT
from factbook.http.pipeline import InternalResponse, post_internally
from factbook.http.requests import Reply
from factbook.tools import Context, Tool
from factbook.tools.tool import ToolCall
from factbook.web import formats
from factbook.web.pages import PageContext, PageRoute

Control = Literal["text", "integer", "number", "boolean", "choice", "list", "object"]

_CONTROLS: Final[Mapping[str, Control]] = {
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "array": "list",
    "object": "object",
}
# JSON parsers disagree about longer numbers.
_MOST_DIGITS = 15


class ArgumentField(NamedTuple):
    """Form field for one argument; texts default to ''."""

    name: str
    control: Control
    description: str
    is_required: bool
    default: str
    example: str
    choices: tuple[tuple[str, str], ...]  # (value, label) pairs


def list_fields(schema: Mapping[str, Any]) -> list[ArgumentField]:
    """List the fields of a schema of strings, numbers, booleans, lists of strings and objects.

    Required fields come first, then schema order.
    """
    required = schema["required"]
    found = [
        _make_field(name, part, name in required) for name, part in schema["properties"].items()
    ]
    return sorted(found, key=lambda field: not field.is_required)


def convert_arguments(
    known: Sequence[ArgumentField], typed: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Convert form texts to arguments; returns them and the problems by field name.

    Empty fields are left out. The tool validates the values.
    """
    values: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for field in known:
        text = typed.get(field.name, "").strip()
        if not text:
            continue
        try:
            values[field.name] = _convert_typed(field, text)
        except ValueError as error:
            problems[field.name] = str(error)
    return values, problems


def _make_field(name: str, part: Mapping[str, Any], is_required: bool) -> ArgumentField:
    control = _CONTROLS.get(part["type"], "text")
    choices = tuple((_format_typed(value), _format_typed(value)) for value in part.get("enum", ()))
    examples = part.get("examples") or [""]
    return ArgumentField(
        name,
        "choice" if choices else control,
        part.get("description", ""),
        is_required,
        _format_typed(part.get("default", "")),
        _format_typed(examples[0]),
        choices,
    )


def _format_typed(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return msgspec.json.encode(value).decode()
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _convert_typed(field: ArgumentField, text: str) -> Any:
    """Convert a text to its type; raises ValueError with a hint for the user."""
    match field.control:
        case "integer":
            return _convert_integer(text)
        case "number":
            return _convert_float(text)
        case "boolean":
            if text not in {"true", "false"}:
                raise ValueError("Write true or false.")
            return text == "true"
        case "list":
            return [line.strip() for line in text.splitlines() if line.strip()]
        case "object":
            try:
                return msgspec.json.decode(text, type=dict[str, Any])
            except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
                raise ValueError(f"Write a JSON object, such as {field.example}.") from None
        case _:
            return text


def _convert_integer(text: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()):
        raise ValueError("Write a whole number, such as 20.")
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"Write a number of at most {_MOST_DIGITS} digits.")
    return int(text)


def _convert_float(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("Write a number, such as 0.5.")
    return number


CONNECT_PATH: Final = "/connect"

_PLACEHOLDER = "YOUR_TOKEN"
# Choices on the page: name, label and toolsets.
_TOOL_CHOICES: Final[tuple[tuple[str, str, Sequence[str]], ...]] = (
    ("", "All tools", ()),
    ("read-only", "Tools that only read", READING),
    ("facts", "Facts", ("facts",)),
    ("checks", "Checks and scorecards", ("checks",)),
)
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
READS: Final = (CATALOG_READ, SOURCE_READ)

_REVISION = "2025-11-25"
_CHECK_HEADERS = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "user-agent": f"factbook-check/{__version__}",
}
_STATUS_MEANINGS = {
    401: "The endpoint did not accept the token of this check.",
    403: "The endpoint refused the call.",
    421: "The endpoint does not answer requests for this host.",
    429: "Too many calls at once.",
    503: "The service cannot answer right now.",
}


class CheckStep(NamedTuple):
    """One call of the check; `status` is None if the call was skipped."""

    title: str
    method: str
    is_good: bool = False
    status: int | None = None
    milliseconds: float = 0.0
    words: str = "Skipped, because the previous call failed."


class _FailedError(Exception):
    """The endpoint didn't return a result; the message says what it returned."""


class _CheckCall(NamedTuple):
    title: str
    method: str
    params: dict[str, Any]
    told: Callable[[dict[str, Any]], str]


async def show_connect(visit: PageContext, steps: Sequence[CheckStep] = ()) -> Reply:
    """Show the client configuration."""
    name = visit.query("client") or next(iter(AGENTS))
    agent = AGENTS.get(name)
    if agent is None:
        raise NotFoundError("There is no client with this name.")
    server, chosen = visit.server, visit.query("tools")
    toolsets = {name: toolsets for name, _, toolsets in _TOOL_CHOICES}.get(chosen)
    if toolsets is None:
        raise NotFoundError("There is no choice of tools with this name.")
    is_compact = visit.query("compact") == "yes"
    # The Host header is untrusted: keep odd host names out of configuration files.
    url = endpoint(server, toolsets, is_compact=is_compact) if is_address(server) else None
    query = {"tools": chosen, "compact": "yes" if is_compact else ""}
    is_local = False
    with suppress(ValueError):  # not a URL
        is_local = urlsplit(server).hostname in _LOOPBACK
    return visit.page(
        "connect.html",
        url=url,
        path=PATH,
        sign_in_url=protocol.build_resource(server) if url and visit.state.oauth.enabled else None,
        public=visit.state.settings.public_url,
        is_local=is_local,
        clients=[(id_, each.title) for id_, each in AGENTS.items()],
        client=name,
        choices=[(id_, title) for id_, title, _ in _TOOL_CHOICES],
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


async def check_endpoint(visit: PageContext) -> Reply:
    """Send a client's first requests to the endpoint, and show the responses."""
    return await show_connect(visit, await _run_steps(visit))


async def redirect_to_connect(visit: PageContext) -> Reply:
    """Redirect to the form, because a check only starts with a POST."""
    return visit.redirect(CONNECT_PATH)


async def _run_steps(visit: PageContext) -> list[CheckStep]:
    """Run the steps up to the first failure; later steps are marked as skipped."""
    if seconds := visit.state.calls.take(visit.person.ref):
        wait = f"Too many calls. Try again in {formats.count_noun(seconds, 'second')}."
        first, *others = _CHECK_CALLS
        failed = CheckStep(first.title, first.method, status=429, words=wait)
        return [failed, *(CheckStep(each.title, each.method) for each in others)]
    value = tokens.generate_token()
    id_ = await _create_check_token(visit, value)
    try:
        return await _call_steps(visit, value)
    finally:
        await visit.state.database.write(lambda transaction: tokens.discard_token(transaction, id_))
        visit.state.touched.pop(id_, None)


async def _create_check_token(visit: PageContext, value: str) -> str:
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


async def _call_steps(visit: PageContext, token: str) -> list[CheckStep]:
    public = visit.state.settings.public_url
    # The host name that clients use.
    host = urlsplit(public).netloc.rpartition("@")[2] if public else visit.request.header(b"host")
    headers = {
        **_CHECK_HEADERS,
        "host": host or "",
        "authorization": f"Bearer {token}",
    }
    steps: list[CheckStep] = []
    for number, each in enumerate(_CHECK_CALLS, 1):
        if steps and not steps[-1].is_good:
            steps.append(CheckStep(each.title, each.method))
            continue
        message = {"jsonrpc": "2.0", "method": each.method, "params": each.params, "id": number}
        started = time.perf_counter()
        answer = await post_internally(
            visit.site.application, PATH, headers, msgspec.json.encode(message), visit.address
        )
        milliseconds = 1000 * (time.perf_counter() - started)
        step = CheckStep(each.title, each.method, True, answer.status, milliseconds)
        try:
            steps.append(step._replace(words=each.told(_extract_result(answer))))
        except _FailedError as error:
            steps.append(step._replace(is_good=False, words=str(error)))
        # Clients send this header after the handshake.
        headers["mcp-protocol-version"] = _REVISION
    return steps


def _extract_result(answer: InternalResponse) -> dict[str, Any]:
    """Extract the result of a response; raises _FailedError if there is none."""
    try:
        body = msgspec.json.decode(answer.body, type=dict[str, Any])
    except msgspec.DecodeError:
        raise _FailedError(f"{_explain_status(answer)} The answer is not JSON.") from None
    result = body.get("result")
    if answer.status == 200 and isinstance(result, dict):
        if result.get("isError"):
            raise _FailedError(f"The tool refused: {result['content'][0]['text']}")
        return result
    error = body.get("error")
    told = error.get("message") if isinstance(error, dict) else body.get("error_description")
    raise _FailedError(f"{_explain_status(answer)} {told or ''}".rstrip())


def _explain_status(answer: InternalResponse) -> str:
    return _STATUS_MEANINGS.get(answer.status, "The endpoint answered with an error.")


def _describe_handshake(result: dict[str, Any]) -> str:
    server = result["serverInfo"]
    name = server.get("title") or server["name"]
    return f"{name} {server['version']} speaks revision {result['protocolVersion']}."


def _describe_sources(result: dict[str, Any]) -> str:
    found = result["structuredContent"]
    count = formats.count_noun(found["totalCount"], "data source")
    return f"{count}, of which {found['customCount']:,} defined by users."


_CHECK_CALLS = (
    _CheckCall(
        "Handshake",
        "initialize",
        {
            "protocolVersion": _REVISION,
            "capabilities": {},
            "clientInfo": {"name": "factbook-check", "version": __version__},
        },
        _describe_handshake,
    ),
    _CheckCall(
        "List of tools",
        "tools/list",
        {},
        lambda result: f"{formats.count_noun(len(result['tools']), 'tool')}.",
    ),
    _CheckCall(
        "A tool call",
        "tools/call",
        {"name": "get-data-source-discovery", "arguments": {"limit": 1}},
        _describe_sources,
    ),
)


def offered_tools(visit: PageContext) -> dict[str, Tool]:
    """The read-only tools that the person has permission to call."""
    return {
        name: tool
        for name, tool in visit.state.every_tool.items()
        if not tool.writes and visit.may(*tool.permissions)
    }


CONNECT: Sequence[PageRoute] = (
    PageRoute("GET", CONNECT_PATH, show_connect, READS),
    PageRoute("GET", f"{CONNECT_PATH}/check", redirect_to_connect, READS),
    PageRoute("POST", f"{CONNECT_PATH}/check", check_endpoint, READS),
)


PLAYGROUND_PATH: Final = "/connect/tools"
RUN: Final = "run"  # query parameter that runs the tool, in addition to its arguments

# Maximum number of characters shown, and the maximum that is still indented.
MOST_SHOWN: Final = 64 * 1024
_LAID_OUT = 4 * MOST_SHOWN
_SUGGESTED = 20
_EXAMPLES = 3
_REASONED = 100
# For tools that return everything by default.
_DEFAULT_LIMIT = "20"
_BYTES_OF_A_TOKEN = 4
_AGENTS_CUT = 25_000


class ToolAnswer(NamedTuple):
    """A tool result for display; `reasons` maps each reason to its unknown facts."""

    text: str
    is_refusal: bool
    size: int
    milliseconds: float
    is_cut: bool = False
    is_laid_out: bool = True
    reasons: Mapping[str, list[str]] = {}

    @property
    def tokens(self) -> int:
        """Approximate number of model tokens."""
        return -(-self.size // _BYTES_OF_A_TOKEN)

    @property
    def is_too_long(self) -> bool:
        """True if agents truncate a result of this length."""
        return self.tokens > _AGENTS_CUT


async def show_tools(visit: PageContext) -> Reply:
    """Show all tools in `tools/list` order."""
    tools = [
        (tool, f"{tool.description.partition('. ')[0].removesuffix('.')}.")
        for tool in offered_tools(visit).values()
    ]
    return visit.page("playground-tools.html", tools=tools)


async def show_tool(visit: PageContext) -> Reply:
    """Show the form of a tool and, after a submit, the result."""
    tool = offered_tools(visit).get(visit.request.parameter("name"))
    if tool is None:
        raise NotFoundError("There is no tool with this name.")
    fields = list_fields(tool.input_schema)
    typed = {field.name: visit.query(field.name) for field in fields}
    if not visit.query(RUN) and not typed.get("limit"):
        # Keep the first result short.
        typed |= {f.name: _DEFAULT_LIMIT for f in fields if f.name == "limit" and not f.default}
    arguments, problems = convert_arguments(fields, typed)
    answer, status, busy = None, 400 if problems else 200, ""
    if visit.query(RUN) and not problems:
        if seconds := visit.state.calls.take(visit.person.ref):
            wait = formats.count_noun(seconds, "second")
            status, busy = 429, f"Too many calls. Try again in {wait}."
        else:
            answer = await _call_tool(visit, tool, arguments)
    suggested = await _suggest_names(visit, fields, typed)
    return visit.page(
        "playground-tool.html",
        status,
        tool=tool,
        fields=fields,
        typed=typed,
        problems=problems,
        busy=busy,
        suggested=suggested,
        examples=_list_examples(tool, fields, typed, suggested),
        sources=await _list_source_choices(visit, typed),
        answer=answer,
        request=_write_request(visit, tool, arguments),
        others=_list_other_tools(visit, tool, arguments),
        explained=REASONS,
    )


async def _call_tool(visit: PageContext, tool: Tool, arguments: Mapping[str, Any]) -> ToolAnswer:
    """Call the tool as a client would."""
    state, started = visit.state, time.perf_counter()
    try:
        sources = (await state.registry.current()).sources
        call = partial(_make_tool_call, visit)
        context = Context(state.database, sources, visit.now, call, in_pages=True)
        value = await tool.call(msgspec.json.encode(arguments), context)
    except (ToolError, UnavailableError) as error:
        state.metrics.called(tool.name, "refused")
        size = len(error.message.encode())
        return ToolAnswer(error.message, True, size, _measure_since(started))
    state.metrics.called(tool.name, "answered")
    return _format_answer(value, _measure_since(started))


def _make_tool_call(visit: PageContext) -> ToolCall:
    """Call context of a token with the permissions of the person."""
    person, state = visit.person, visit.state
    grant = Grant(person.id, person.ref, person.permissions, None, None, None)
    caller = partial(Caller, person.ref, visit.now, visit.address, grant=person.grant)
    return ToolCall(grant, caller, state.registry, state.settings)


def _format_answer(value: str, milliseconds: float) -> ToolAnswer:
    """Format a result for display, truncated at MOST_SHOWN characters."""
    size = len(value) if value.isascii() else len(value.encode())
    if len(value) > _LAID_OUT:
        return ToolAnswer(
            value[:MOST_SHOWN], False, size, milliseconds, is_cut=True, is_laid_out=False
        )
    text = msgspec.json.format(value, indent=2)
    is_cut = len(text) > MOST_SHOWN
    if is_cut:
        text = text[: text.rfind("\n", 0, MOST_SHOWN)]
    return ToolAnswer(text, False, size, milliseconds, is_cut, reasons=_list_reasons(value))


class _Reasoned(msgspec.Struct):
    unknown: dict[str, Any] = msgspec.field(default_factory=dict, name="unknownReasons")


def _list_reasons(value: str) -> dict[str, list[str]]:
    """Group the unknown facts by reason, if the result has reasons."""
    found: dict[str, list[str]] = {}
    unknown = msgspec.json.decode(value, type=_Reasoned).unknown
    for path, reason in list(unknown.items())[:_REASONED]:
        if isinstance(reason, str):
            found.setdefault(reason, []).append(path)
    return found


async def _suggest_names(
    visit: PageContext, fields: Sequence[ArgumentField], typed: Mapping[str, str]
) -> dict[str, list[str]]:
    """Suggest entity names close to the typed text."""
    names = {field.name for field in fields}
    if "name" not in names:
        return {}
    kind, name = typed.get("kind", "").lower() or "component", typed["name"].lower()
    if not (kind.isprintable() and name.isprintable()):
        return {}
    refs = await stored_entities.find_nearest_names(visit.state.database, kind, name, _SUGGESTED)
    refs = refs[:_SUGGESTED]
    # Outside the default namespace, the name alone would be a different entity.
    found = {"name": [formats.get_ref_name(ref) if ":default/" in ref else ref for ref in refs]}
    return found | {"entityRef": refs} if "entityRef" in names else found


def _list_examples(
    tool: Tool,
    fields: Sequence[ArgumentField],
    typed: Mapping[str, str],
    suggested: Mapping[str, Sequence[str]],
) -> list[tuple[str, str]]:
    """Example calls as (entity name, URL)."""
    needed = {field.name: field.example for field in fields if field.is_required}
    given = needed | {name: text for name, text in typed.items() if text}
    return [
        (
            name,
            f"{PLAYGROUND_PATH}/{tool.name}?{urlencode({**given, 'name': name, RUN: '1'})}#result",
        )
        for name in suggested.get("name", ())[:_EXAMPLES]
    ]


async def _list_source_choices(
    visit: PageContext, typed: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Data sources to choose from, plus the requested one if unknown."""
    known = (await visit.state.registry.current()).sources.values()
    found = [(source.id, f"{source.title} ({source.id})") for source in known]
    asked = typed.get("dataSourceId", "")
    if asked and asked not in dict(found):
        found.append((asked, asked))
    return found


def _write_request(visit: PageContext, tool: Tool, arguments: Mapping[str, Any]) -> dict[str, str]:
    """The call as a JSON-RPC message and as shell commands."""
    message = {
        "jsonrpc": "2.0",
        "method": "tools/call",
        "params": {"name": tool.name, "arguments": arguments},
        "id": 1,
    }
    body = msgspec.json.encode(message).decode()
    lines = [
        f"curl -sS {shlex.quote(visit.server + ENDPOINT)}",
        f'-H "Authorization: Bearer ${VARIABLE}"',
        "-H 'Content-Type: application/json'",
        "-H 'Accept: application/json, text/event-stream'",
        f"--data-raw {shlex.quote(body)}",
    ]
    words = [f"{name}={formats.format_word(value)}" for name, value in arguments.items()]
    command = ["factbook", "call", tool.name, *words]
    return {
        "message": msgspec.json.format(body, indent=2),
        "curl": " \\\n  ".join(lines),
        # `factbook call` supports only the fact tools.
        **({"factbook": shlex.join(command)} if tool.name in visit.state.tools else {}),
    }


def _list_other_tools(
    visit: PageContext, tool: Tool, arguments: Mapping[str, Any]
) -> list[tuple[str, str]]:
    """Other tools for the same entity, as (title, URL)."""
    entity = {name: arguments[name] for name in ("name", "namespace", "kind") if name in arguments}
    if "name" not in entity:
        return []
    found = []
    for other in offered_tools(visit).values():
        taken = other.input_schema["properties"]
        if other is not tool and "name" in taken:
            query = urlencode({name: text for name, text in entity.items() if name in taken})
            found.append((other.title, f"{PLAYGROUND_PATH}/{other.name}?{query}"))
    return found


def _measure_since(started: float) -> float:
    return 1000 * (time.perf_counter() - started)


PLAYGROUND: Sequence[PageRoute] = (
    PageRoute("GET", PLAYGROUND_PATH, show_tools, READS),
    PageRoute("GET", f"{PLAYGROUND_PATH}/{{name}}", show_tool, READS),
)
