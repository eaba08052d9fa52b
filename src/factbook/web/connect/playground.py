"""The playground: a form for each tool, the client's call, and its answer."""

import shlex
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import msgspec

from factbook.audit.trail import Caller
from factbook.auth.tokens import Grant
from factbook.catalog.store import stored_entities
from factbook.errors import NotFoundError, ToolError, UnavailableError
from factbook.facts.schema import REASONS
from factbook.http.client_configs import PATH as ENDPOINT
from factbook.http.client_configs import VARIABLE
from factbook.http.requests import Reply
from factbook.tools import Context, Tool
from factbook.tools.tool import ToolCall
from factbook.web.connect import schema_forms
from factbook.web.connect.page import READS, offered_tools
from factbook.web.connect.schema_forms import ArgumentField
from factbook.web.site import formats
from factbook.web.site.endpoint import PageRoute
from factbook.web.site.page_context import PageContext

PATH: Final = "/connect/tools"
RUN: Final = "run"  # the parameter that asks for the call, beside those of the tool

# Characters of an answer that are shown, and those of one that is still laid out.
SHOWN: Final = 64 * 1024
_LAID_OUT = 4 * SHOWN
_SUGGESTED = 20
_EXAMPLES = 3
_REASONED = 100
# Where a tool gives everything unless it is told how much.
_LIMIT = "20"
_BYTES_OF_A_TOKEN = 4
_AGENTS_CUT = 25_000


class ToolAnswer(NamedTuple):
    """Displayed answer of a tool; `reasons` maps each reason to the unknown facts."""

    text: str
    is_refusal: bool
    size: int
    milliseconds: float
    is_cut: bool = False
    is_laid_out: bool = True
    reasons: Mapping[str, list[str]] = {}

    @property
    def tokens(self) -> int:
        """Approximate number of a model's tokens."""
        return -(-self.size // _BYTES_OF_A_TOKEN)

    @property
    def is_too_long(self) -> bool:
        """True if agents cut it, as the descriptions of the tools say."""
        return self.tokens > _AGENTS_CUT


async def listed(visit: PageContext) -> Reply:
    """Page of every tool, in the order of `tools/list`."""
    tools = [(tool, _first_sentence(tool.description)) for tool in offered_tools(visit).values()]
    return visit.page("playground-tools.html", tools=tools)


async def show(visit: PageContext) -> Reply:
    """Page with the form of a tool and, once it was sent, the answer."""
    tool = offered_tools(visit).get(visit.request.parameter("name"))
    if tool is None:
        raise NotFoundError("There is no tool of this name.")
    fields = schema_forms.fields(tool.input_schema)
    typed = _typed(visit, fields)
    arguments, problems = schema_forms.arguments(fields, typed)
    answer, status, busy = None, 400 if problems else 200, ""
    if visit.query(RUN) and not problems:
        if seconds := visit.state.calls.take(visit.person.ref):
            wait = formats.counted(seconds, "second")
            status, busy = 429, f"Too many calls. Try again in {wait}."
        else:
            answer = await _called(visit, tool, arguments)
    suggested = await _suggested(visit, fields, typed)
    return visit.page(
        "playground-tool.html",
        status,
        tool=tool,
        fields=fields,
        typed=typed,
        problems=problems,
        busy=busy,
        suggested=suggested,
        examples=_examples(tool, fields, typed, suggested),
        sources=await _sources(visit, typed),
        answer=answer,
        request=_request(visit, tool, arguments),
        others=_others(visit, tool, arguments),
        explained=REASONS,
    )


async def _called(visit: PageContext, tool: Tool, arguments: Mapping[str, Any]) -> ToolAnswer:
    """Answer to the call, made as a client's."""
    state, started = visit.state, time.perf_counter()
    try:
        sources = (await state.registry.current()).sources
        call = partial(_call_of, visit)
        context = Context(state.database, sources, visit.now, call, in_pages=True)
        value = await tool.call(msgspec.json.encode(arguments), context)
    except (ToolError, UnavailableError) as error:
        state.metrics.called(tool.name, "refused")
        size = len(error.message.encode())
        return ToolAnswer(error.message, True, size, _milliseconds(started))
    state.metrics.called(tool.name, "answered")
    return _answer(value, _milliseconds(started))


def _call_of(visit: PageContext) -> ToolCall:
    """The call as that of a token with the permissions of the person."""
    person, state = visit.person, visit.state
    grant = Grant(person.id, person.ref, person.permissions, None, None, None)
    caller = partial(Caller, person.ref, visit.now, visit.address, grant=person.grant)
    return ToolCall(grant, caller, state.registry, state.settings)


def _answer(value: str, milliseconds: float) -> ToolAnswer:
    """A result for display, cut at a readable length."""
    size = len(value) if value.isascii() else len(value.encode())
    if len(value) > _LAID_OUT:
        return ToolAnswer(value[:SHOWN], False, size, milliseconds, is_cut=True, is_laid_out=False)
    text = msgspec.json.format(value, indent=2)
    is_cut = len(text) > SHOWN
    if is_cut:
        text = text[: text.rfind("\n", 0, SHOWN)]
    return ToolAnswer(text, False, size, milliseconds, is_cut, reasons=_reasons(value))


class _Reasoned(msgspec.Struct):
    unknown: dict[str, Any] = msgspec.field(default_factory=dict, name="unknownReasons")


def _reasons(value: str) -> dict[str, list[str]]:
    """Unknown facts by reason, as far as the answer has reasons."""
    found: dict[str, list[str]] = {}
    unknown = msgspec.json.decode(value, type=_Reasoned).unknown
    for path, reason in list(unknown.items())[:_REASONED]:
        if isinstance(reason, str):
            found.setdefault(reason, []).append(path)
    return found


def _typed(visit: PageContext, fields: Sequence[ArgumentField]) -> dict[str, str]:
    """Values of the form: as sent, initially ones that keep an answer short."""
    typed = {field.name: visit.query(field.name) for field in fields}
    if not visit.query(RUN) and not typed.get("limit"):
        typed |= {f.name: _LIMIT for f in fields if f.name == "limit" and not f.default}
    return typed


async def _suggested(
    visit: PageContext, fields: Sequence[ArgumentField], typed: Mapping[str, str]
) -> dict[str, list[str]]:
    """Suggestions for fields that name an entity: neighbours of the typed text."""
    names = {field.name for field in fields}
    if "name" not in names:
        return {}
    kind, name = typed.get("kind", "").lower() or "component", typed["name"].lower()
    if not (kind.isprintable() and name.isprintable()):
        return {}
    refs = await stored_entities.find_nearest_names(visit.state.database, kind, name, _SUGGESTED)
    refs = refs[:_SUGGESTED]
    found = {"name": [_named(ref) for ref in refs]}
    return found | {"entityRef": refs} if "entityRef" in names else found


def _named(ref: str) -> str:
    """Name to enter: the full reference where the name alone is another entity's."""
    return formats.name_of(ref) if ":default/" in ref else ref


def _examples(
    tool: Tool,
    fields: Sequence[ArgumentField],
    typed: Mapping[str, str],
    suggested: Mapping[str, Sequence[str]],
) -> list[tuple[str, str]]:
    """Example calls, each as an entity and the address of its call."""
    needed = {field.name: field.example for field in fields if field.is_required}
    given = needed | {name: text for name, text in typed.items() if text}
    return [
        (name, f"{PATH}/{tool.name}?{urlencode({**given, 'name': name, RUN: '1'})}#result")
        for name in suggested.get("name", ())[:_EXAMPLES]
    ]


async def _sources(visit: PageContext, typed: Mapping[str, str]) -> list[tuple[str, str]]:
    """Data sources to choose from, and a requested one that does not exist."""
    known = (await visit.state.registry.current()).sources.values()
    found = [(source.id, f"{source.title} ({source.id})") for source in known]
    asked = typed.get("dataSourceId", "")
    if asked and asked not in dict(found):
        found.append((asked, asked))
    return found


def _request(visit: PageContext, tool: Tool, arguments: Mapping[str, Any]) -> dict[str, str]:
    """The call as clients send it: the message, and a line for the shell."""
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
    words = [f"{name}={formats.word_of(value)}" for name, value in arguments.items()]
    command = ["factbook", "call", tool.name, *words]
    return {
        "message": msgspec.json.format(body, indent=2),
        "curl": " \\\n  ".join(lines),
        # The command calls the tools of facts alone.
        **({"factbook": shlex.join(command)} if tool.name in visit.state.tools else {}),
    }


def _others(visit: PageContext, tool: Tool, arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Other tools for the same entity, each with the address of its form."""
    entity = {name: arguments[name] for name in ("name", "namespace", "kind") if name in arguments}
    if "name" not in entity:
        return []
    found = []
    for other in offered_tools(visit).values():
        taken = other.input_schema["properties"]
        if other is not tool and "name" in taken:
            query = urlencode({name: text for name, text in entity.items() if name in taken})
            found.append((other.title, f"{PATH}/{other.name}?{query}"))
    return found


def _first_sentence(text: str) -> str:
    return f"{text.partition('. ')[0].removesuffix('.')}."


def _milliseconds(started: float) -> float:
    return 1000 * (time.perf_counter() - started)


PLAYGROUND: Sequence[PageRoute] = (
    PageRoute("GET", PATH, listed, READS),
    PageRoute("GET", f"{PATH}/{{name}}", show, READS),
)
