"""The playground: a form for each tool, the request as clients send it, and the answer."""

import json
import re
import shlex
from collections.abc import Mapping
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml

from factbook.auth import roles
from factbook.facts import shapes
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from factbook.sources import SOURCES
from factbook.tools import TOOLS
from factbook.web import schema_forms
from tests.conftest import StartService
from tests.facts.shapes import everything
from tests.service import Service, call, component, resource
from tests.tools.sources import record
from tests.web.test_connect import codes
from tests.web.visiting import Browser, signed_in, words

AWS = "backstage-plugin-aws-auth"
SOURCE = {"dataSourceId": "entity-metadata"}
# A call of each tool that succeeds, as it is typed and as it is sent.
CALLS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "get-data-source-discovery": ({"limit": "2"}, {"limit": 2}),
    "get-entity-facts": ({"name": AWS, **SOURCE}, {"name": AWS, **SOURCE}),
    "get-all-entities-facts": (
        {**SOURCE, "kind": " * ", "limit": "3", "facts": "hasOwner\r\n\r\nhasTags\r\n"},
        {**SOURCE, "kind": "*", "limit": 3, "facts": ["hasOwner", "hasTags"]},
    ),
    "get-codehost-metrics": (
        {"name": "", "entityRef": f"component:default/{AWS}"},
        {"entityRef": f"component:default/{AWS}"},
    ),
    "get-security-metrics": ({"name": AWS}, {"name": AWS}),
    "get-incident-metrics": ({"name": AWS}, {"name": AWS}),
    "get-observability-metrics": ({"name": AWS}, {"name": AWS}),
    "get-entity-compliance": (
        {"name": AWS, "kind": "Component"},
        {"name": AWS, "kind": "Component"},
    ),
    "get-repository-info": ({"name": AWS, "limit": "1"}, {"name": AWS, "limit": 1}),
    "get-fact-history": ({"name": AWS, "limit": ""}, {"name": AWS}),
    "get-changed-facts": ({"since": "7d"}, {"since": "7d"}),
}


def _facts(shape: shapes.Shape) -> dict[str, object]:
    return {f"{shape.name}.{path}": value for path, value in everything(shape).items()}


VENDOR_FACTS = _facts(shapes.OBSERVABILITY) | _facts(shapes.REPOSITORY)
_TYPES: dict[type, Any] = {bool: "boolean", int: "integer", list: "set", str: "string"}
VENDOR = DataSource(
    id="vendor",
    title="A vendor <script>alert(1)</script>",
    schema=tuple(Fact(name, _TYPES[type(value)]) for name, value in VENDOR_FACTS.items()),
)


async def called(visitor: Browser, tool: str, typed: Mapping[str, str], status: int = 200) -> str:
    """The page of a tool after its form was sent."""
    query = urlencode({**typed, "run": "1"})
    return await visitor.text(f"/connect/tools/{tool}?{query}", status=status)


def answer(page: str) -> Any:
    """The answer that a page shows."""
    return json.loads(codes(page)[0])


def value_of(page: str, name: str) -> str:
    """What a field of the form holds."""
    found = re.search(rf'<input [^>]*name="{name}" value="([^"]*)"', page)
    assert found is not None, name
    return unescape(found[1])


@pytest.fixture
async def visitor(service: Service) -> Browser:
    return await signed_in(service, "vic", roles.VIEWER)


# Forms


async def test_every_tool_is_listed_with_what_it_tells(visitor: Browser) -> None:
    page = await visitor.text("/connect/tools")
    assert "11 tools that agents can call." in words(page)
    for tool in TOOLS:
        assert f'<a href="/connect/tools/{tool.name}">{tool.title}</a>' in unescape(page)
        assert f"<code>{tool.name}</code>" in page
    assert "Returns the numbers of service level objectives and of monitors of an entity." in page


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
async def test_every_argument_of_a_tool_has_a_labelled_field(visitor: Browser, tool: Any) -> None:
    page = await visitor.text(f"/connect/tools/{tool.name}")
    schema = tool.input_schema
    for name, part in schema["properties"].items():
        assert f'<label for="{name}">' in page
        [control] = re.findall(rf'<(?:input|select|textarea) [^>]*name="{name}"[^>]*>', page)
        assert ('aria-required="true"' in control) == (name in schema["required"])
        assert part["description"].split("`")[0].split("'")[0] in unescape(page)
        if "default" in part:
            assert f"Default: {part['default']}." in page
    assert "Answer" not in words(page).split("Schemas, as clients list them")[0]
    assert 'href="/connect/tools/' not in page.split("<main")[1].split("For example")[0]


async def test_there_is_no_form_of_an_unknown_tool(visitor: Browser) -> None:
    page = await visitor.text("/connect/tools/get-nothing", status=404)
    assert "There is no tool of this name." in page


async def test_the_form_suggests_entities_and_the_sources_there_are(
    service: Service, visitor: Browser
) -> None:
    assert "push a set" in await visitor.text("/connect/tools/get-entity-facts")
    away = component("away")
    away["metadata"]["namespace"] = "ops"
    await service.push("all", component("orders"), component("payments"), away, resource("db"))
    page = await visitor.text("/connect/tools/get-entity-facts")
    assert re.findall(r'<option value="([^"]+)">', page.split("<datalist")[1].split("</")[0]) == [
        "component:ops/away",
        "orders",
        "payments",
    ]
    assert '<option value="entity-metadata">Entity metadata (entity-metadata)</option>' in page
    near = await visitor.text("/connect/tools/get-entity-compliance?kind=Resource")
    assert re.findall(r'<option value="([^"]+)">', near) == ["db"]
    either = await visitor.text("/connect/tools/get-fact-history")
    assert '<option value="component:default/orders">' in either


async def test_an_example_is_one_link_away(service: Service, visitor: Browser) -> None:
    await service.push("all", component("orders"))
    page = await visitor.text("/connect/tools/get-entity-facts")
    [path] = re.findall(r'For example: <a href="([^"#]+)#result">orders</a>', page)
    shown = await visitor.text(unescape(path))
    assert answer(shown)["entityRef"] == "component:default/orders"


async def test_answers_are_kept_short_unless_the_limit_is_taken_out(
    service: Service, visitor: Browser
) -> None:
    await service.push("all", *(component(f"c{number:02}") for number in range(30)))
    form = await visitor.text("/connect/tools/get-all-entities-facts")
    assert value_of(form, "limit") == "20"
    short = await called(visitor, "get-all-entities-facts", {**SOURCE, "limit": "20"})
    assert len(answer(short)["entities"]) == 20
    whole = await called(visitor, "get-all-entities-facts", {**SOURCE, "limit": ""})
    assert len(answer(whole)["entities"]) == 30
    assert value_of(whole, "limit") == ""


# Calls


@pytest.fixture
async def filled(start: StartService, test_data: Path) -> Service:
    """A service with a real catalog, and with a vendor's facts about one of its entities."""
    service = await start(sources=[*SOURCES, VENDOR])
    text = (test_data / "catalogs" / "plugins.yaml").read_text()
    pushed = await service.push("plugins", *yaml.safe_load_all(text))
    assert pushed.status_code == 200, pushed.text
    await record(service, f"component:default/{AWS}", VENDOR_FACTS, VENDOR)
    return service


async def test_every_tool_answers_a_viewer_what_it_answers_a_client(filled: Service) -> None:
    visitor = await signed_in(filled, "vic", roles.VIEWER)
    assert CALLS.keys() == {tool.name for tool in TOOLS}
    for tool, (typed, arguments) in CALLS.items():
        page = await called(visitor, tool, typed)
        shown, message, curl, command, *_ = codes(page)
        assert json.loads(shown) == await filled.facts(tool, **arguments), tool
        assert json.loads(message) == call(tool, arguments)
        *_, data = shlex.split(curl)
        assert json.loads(data) == call(tool, arguments)
        assert shlex.split(command)[:3] == ["factbook", "call", tool]


async def test_the_curl_line_says_what_a_client_sends(filled: Service) -> None:
    visitor = await signed_in(filled)
    page = await called(visitor, "get-entity-compliance", {"name": "it's $HOME `id`"})
    _, curl, command = codes(page)[:3]
    parts = shlex.split(curl)
    assert parts[:3] == [
        "curl", "-sS", "http://127.0.0.1:8000/api/mcp/v1/tech-insights-facts",
    ]  # fmt: skip
    assert "Authorization: Bearer $FACTBOOK_TOKEN" in parts
    assert shlex.split(command)[3] == "name=it's $HOME `id`"
    sent = await filled.http.post(
        "/api/mcp/v1/tech-insights-facts",
        content=parts[-1],
        headers={"content-type": "application/json"},
    )
    assert sent.json()["result"]["isError"] is True


async def test_what_an_answer_takes_is_counted(filled: Service) -> None:
    page = await called(await signed_in(filled), "get-entity-compliance", {"name": AWS})
    whole = await filled.ask("get-entity-compliance", name=AWS)
    size = len(whole["content"][0]["text"].encode())
    figures = rf"{size:,} bytes · about {-(-size // 4):,} tokens · \d+\.\d ms"
    assert re.search(figures, words(page))


async def test_what_is_not_known_is_told_with_its_reason(filled: Service) -> None:
    page = await called(await signed_in(filled), "get-codehost-metrics", {"name": AWS})
    assert "Not known, and why" in page
    assert "No integration that determines this is configured on this server." in page
    assert "pullRequests.total" in page
    assert answer(page)["unknownReasons"]["pullRequests.total"] == "not-configured"


async def test_a_tool_about_the_same_entity_is_one_link_away(filled: Service) -> None:
    visitor = await signed_in(filled)
    page = await called(
        visitor, "get-entity-facts", CALLS["get-entity-facts"][0] | {"kind": "component"}
    )
    assert f'href="/connect/tools/get-entity-compliance?name={AWS}&amp;kind=component"' in page
    assert f'href="/connect/tools/get-repository-info?name={AWS}"' in page
    form = await visitor.text(f"/connect/tools/get-entity-compliance?name={AWS}&kind=component")
    assert value_of(form, "name") == AWS
    assert "ms</span>" not in form


async def test_calls_count_as_those_of_clients(filled: Service) -> None:
    await called(await signed_in(filled), "get-entity-compliance", {"name": AWS})
    metrics = (await filled.http.get("/metrics")).text
    assert re.search(r'tool="get-entity-compliance"[^\n]* 1\.0', metrics)


# Refusals, and what cannot be sent


@pytest.mark.parametrize(
    ("tool", "typed"),
    [
        ("get-entity-facts", {}),
        ("get-entity-facts", {"name": "nobody", **SOURCE}),
        ("get-entity-facts", {"name": "web", "dataSourceId": "none"}),
        ("get-entity-compliance", {"name": "a:b:c/d"}),
        ("get-entity-compliance", {"name": "a\0b"}),
        ("get-codehost-metrics", {}),
        ("get-codehost-metrics", {"name": "web", "entityRef": "component:default/other"}),
        ("get-observability-metrics", {"name": "web"}),
        ("get-all-entities-facts", {**SOURCE, "facts": "none\nhasOwner"}),
        ("get-changed-facts", {"since": "yesterday"}),
        ("get-fact-history", {"name": "web", "limit": "201"}),
    ],
)
async def test_a_refusal_is_shown_as_a_client_gets_it(
    service: Service, visitor: Browser, tool: str, typed: dict[str, str]
) -> None:
    await service.push("all", component("web"))
    page = await called(visitor, tool, typed)
    fields = schema_forms.fields(service.state.tools[tool].input_schema)
    arguments, _ = schema_forms.arguments(fields, typed)
    assert "The tool refuses" in page
    assert await service.refusal(tool, **arguments) in unescape(page)
    for name in {"name", "since", "limit", "entityRef"} & typed.keys():
        assert value_of(page, name) == typed[name]


@pytest.mark.parametrize("typed", ["many", "1.5", "1e3", "٣", "9" * 16, "--1", "-"])
async def test_what_is_no_number_is_marked_and_kept(visitor: Browser, typed: str) -> None:
    page = await called(
        visitor, "get-all-entities-facts", {**SOURCE, "limit": typed, "facts": "a"}, 400
    )
    assert "The tool was not called" in page
    assert "Write a " in page
    assert 'aria-invalid="true"' in page
    assert value_of(page, "limit") == typed
    assert '<option value="entity-metadata" selected>' in page
    assert ">a</textarea>" in page


async def test_a_source_that_does_not_exist_stays_chosen(visitor: Browser) -> None:
    page = await called(visitor, "get-all-entities-facts", {"dataSourceId": '"><b>'})
    assert "There is no data source" in page
    assert '<option value="&#34;&gt;&lt;b&gt;" selected>' in page


async def test_who_calls_too_often_is_told_to_wait(start: StartService) -> None:
    service = await start(token_rate=1, token_burst=1)
    visitor = await signed_in(service)
    await called(visitor, "get-changed-facts", {"since": "7d"})
    page = await called(visitor, "get-changed-facts", {"since": "8d"}, 429)
    assert "You call too often. Try again in 1 second." in page
    assert value_of(page, "since") == "8d"


# Hostile and large content


async def test_what_entities_and_facts_hold_stays_text(filled: Service) -> None:
    visitor = await signed_in(filled)
    hostile = '<script>alert("x")</script>'
    pushed = await filled.push("hostile", component("<img src=x onerror=alert(1)>"))
    assert pushed.status_code == 200, pushed.text
    await filled.push("more", component("web"))
    facts = VENDOR_FACTS | {"repository.filePaths": [hostile, "</pre></code><b>"]}
    await record(filled, "component:default/web", facts, VENDOR)
    for tool, typed in (
        ("get-repository-info", {"name": "web"}),
        ("get-entity-facts", {"name": "web", "dataSourceId": "vendor"}),
        ("get-entity-facts", {"name": hostile, "dataSourceId": hostile, "kind": hostile}),
        ("get-all-entities-facts", {**SOURCE, "kind": "*"}),
        ("get-data-source-discovery", {}),
        ("get-fact-history", {"entityRef": hostile, "facts": hostile, "cursor": hostile}),
    ):
        page = await called(visitor, tool, typed)
        assert "<script>" not in page.replace("<script src", "")
        assert "<img src=x" not in page
        assert "</pre></code>" not in page
        assert "<b>" not in page
    page = await called(visitor, "get-repository-info", {"name": "web"})
    assert hostile in answer(page)["filePaths"]


async def test_a_large_answer_is_shown_in_part(service: Service, visitor: Browser) -> None:
    await service.push("all", *(component(f"component-{n:04}") for n in range(3_000)))
    for limit, note in (("400", "64 KiB. Clients get"), ("", "64 KiB, on one line as they came")):
        page = await called(visitor, "get-all-entities-facts", {**SOURCE, "limit": limit})
        assert note in words(page)
        assert ("Agents cut answers" in page) == (not limit)
        assert 50_000 < len(codes(page)[0]) <= 64 * 1024
        assert len(page) < 300_000
    size = len((await service.ask("get-all-entities-facts", **SOURCE))["content"][0]["text"])
    assert f"{size:,} bytes" in page


# Schemas that no tool has yet


def test_other_schemas_get_their_controls_and_values() -> None:
    known = schema_forms.fields(
        {
            "properties": {
                "deep": {"type": "boolean", "default": False},
                "share": {"type": "number"},
                "order": {"type": "string", "enum": ["up", "down"]},
                "names": {"type": "array", "items": {"type": "string"}, "default": ["a", "b"]},
                "count": {"type": "integer"},
            },
            "required": ["count"],
        }
    )
    assert [(field.name, field.control) for field in known] == [
        ("count", "integer"),
        ("deep", "boolean"),
        ("share", "number"),
        ("order", "choice"),
        ("names", "list"),
    ]
    assert [field.default for field in known] == ["", "false", "", "", "a\nb"]
    typed = {"count": "-7", "deep": "true", "share": "0.5", "order": "up", "names": " a \n b c\n"}
    expected = {"count": -7, "deep": True, "share": 0.5, "order": "up", "names": ["a", "b c"]}
    assert schema_forms.arguments(known, typed) == (expected, {})
    wrong = {"count": "x", "deep": "yes", "share": "nan"}
    values, problems = schema_forms.arguments(known, wrong)
    assert values == {}
    assert problems.keys() == wrong.keys()
