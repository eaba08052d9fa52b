"""The playground: a form for each tool, and what it says of what cannot be answered."""

import re
from html import unescape

import pytest

from factbook.auth import permissions
from factbook.tools import TOOLS, toolsets
from factbook.web import connect
from tests.conftest import StartService
from tests.service import Service, call, component, resource
from tests.web.calling import SOURCE, answer, called, value_of
from tests.web.test_connect import codes
from tests.web.visiting import Browser, signed_in, words


@pytest.fixture
async def visitor(service: Service) -> Browser:
    return await signed_in(service, "vic", permissions.VIEWER)


# Forms


async def test_every_tool_is_listed_with_what_it_tells(visitor: Browser) -> None:
    page = await visitor.text("/connect/tools")
    assert "19 tools that agents can call." in words(page)
    for tool in (*TOOLS, *toolsets.READING_CHECK_TOOLS):
        assert f'<a href="/connect/tools/{tool.name}">{tool.title}</a>' in unescape(page)
        assert f"<code>{tool.name}</code>" in page
    assert "Returns the numbers of service level objectives and of monitors of an entity." in page


async def test_every_argument_of_a_tool_has_a_labelled_field(
    visitor: Browser, subtests: pytest.Subtests
) -> None:
    assert TOOLS
    for tool in TOOLS:
        with subtests.test(tool.name):
            page = await visitor.text(f"/connect/tools/{tool.name}")
            schema = tool.input_schema
            for name, part in schema["properties"].items():
                assert f'<label for="{name}">' in page
                [control] = re.findall(
                    rf'<(?:input|select|textarea) [^>]*name="{name}"[^>]*>', page
                )
                assert ('aria-required="true"' in control) == (name in schema["required"])
                assert part["description"].split("`")[0].split("'")[0] in unescape(page)
                if "default" in part:
                    default = {True: "true", False: "false"}.get(part["default"], part["default"])
                    assert f"Default: {default}." in page
            assert "Answer" not in words(page).split("Schemas, as clients list them")[0]
            assert 'href="/connect/tools/' not in page.split("<main")[1].split("For example")[0]


async def test_there_is_no_form_of_an_unknown_tool(visitor: Browser) -> None:
    page = await visitor.text("/connect/tools/get-nothing", status=404)
    assert "There is no tool with this name." in page


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


@pytest.mark.slow
async def test_a_large_answer_is_shown_in_part(service: Service, visitor: Browser) -> None:
    await service.push("all", *(component(f"component-{n:04}") for n in range(3_000)))
    page = await called(visitor, "get-all-entities-facts", {**SOURCE, "limit": "400"})
    assert "Only the first 64 KiB are shown" in words(page)
    assert 50_000 < len(codes(page)[0]) <= 64 * 1024
    assert len(page) < 300_000
    sent = call("get-all-entities-facts", {**SOURCE, "limit": 400})
    result = (await service.http.post("/mcp", json=sent)).json()["result"]
    assert f"{len(result['content'][0]['text']):,} bytes" in page


# Refusals, and what cannot be sent


async def test_a_refusal_is_shown_as_a_client_gets_it(
    service: Service, visitor: Browser, subtests: pytest.Subtests
) -> None:
    await service.push("all", component("web"))
    cases: list[tuple[str, dict[str, str]]] = [
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
    ]
    for tool, typed in cases:
        with subtests.test(tool=tool, typed=typed):
            page = await called(visitor, tool, typed)
            fields = connect.list_fields(service.state.tools[tool].input_schema)
            arguments, _ = connect.convert_arguments(fields, typed)
            assert "The tool refuses" in page
            assert await service.refusal(tool, **arguments) in unescape(page)
            for name in {"name", "since", "limit", "entityRef"} & typed.keys():
                assert value_of(page, name) == typed[name]


async def test_what_is_no_number_is_marked_and_kept(
    visitor: Browser, subtests: pytest.Subtests
) -> None:
    for typed in ["many", "1.5", "1e3", "٣", "9" * 16, "--1", "-"]:
        with subtests.test(typed=typed):
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
    assert "Too many calls. Try again in 1 second." in page
    assert value_of(page, "since") == "8d"
