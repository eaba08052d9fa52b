"""The client's methods for data sources and facts, against a running service."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from factbook.client import ApiError, AsyncClient
from tests.service import Service, component

WEB = "component:default/web"


def coverage(**schema: Any) -> dict[str, Any]:
    """A source whose facts are pushed."""
    return {
        "id": "coverage",
        "title": "Coverage",
        "handlerDefinition": {"type": "push", "config": {"id": "coverage"}},
        "schema": {"lines": {"type": "float", "unit": "percent"}, **schema},
    }


@pytest.fixture
async def client(service: Service) -> AsyncIterator[AsyncClient]:
    """A client of the service, whose token carries every permission."""
    transport = httpx2.ASGITransport(service.application, client=("127.0.0.1", 40_000))
    token = await service.token()
    async with AsyncClient("http://127.0.0.1:8000", token, transport=transport) as client:
        yield client


@pytest.fixture
async def published(client: AsyncClient) -> None:
    """The source `coverage`, and the components web and shop."""
    await client.push("all", [component("web"), component("shop")])
    await client.put_data_source(coverage())
    await client.publish_data_source("coverage")


async def test_a_source_is_defined_published_and_deleted(client: AsyncClient) -> None:
    drafted = await client.put_data_source(coverage())
    assert (drafted.draft, drafted.origin, drafted.version) == (True, "custom", "0.0.0")
    assert drafted.definition is not None
    assert (drafted.definition.pending, drafted.definition.draft) == (True, coverage())
    published = await client.publish_data_source("coverage")
    assert (published.draft, published.version) == (False, "1.0.0")
    await client.put_data_source(coverage(branches={"type": "set"}))
    assert (await client.publish_data_source("coverage")).version == "1.1.0"
    found = await client.data_source("coverage")
    assert found.definition is not None
    assert [each.version for each in found.definition.versions] == ["1.1.0", "1.0.0"]
    assert found.schema["lines"].unit == "percent"
    await client.delete_data_source("coverage")
    with pytest.raises(ApiError) as caught:
        await client.data_source("coverage")
    assert caught.value.status == 404


@pytest.mark.usefixtures("published")
async def test_a_fact_that_is_removed_is_refused_unless_forced(client: AsyncClient) -> None:
    changed = coverage() | {"schema": {"branches": {"type": "float"}}}
    await client.put_data_source(changed)
    with pytest.raises(ApiError) as caught:
        await client.publish_data_source("coverage")
    assert caught.value.status == 409
    assert (await client.publish_data_source("coverage", force=True)).version == "2.0.0"


async def test_every_problem_of_a_definition_is_in_the_error(client: AsyncClient) -> None:
    with pytest.raises(ApiError) as caught:
        await client.put_data_source(coverage() | {"title": "", "colour": "red"})
    problems = caught.value.details["problems"]
    assert [problem["path"] for problem in problems] == ["colour", "title"]


@pytest.mark.usefixtures("published")
async def test_sources_are_read_page_by_page(client: AsyncClient) -> None:
    first = await client.data_sources(limit=2)
    second = await client.data_sources(cursor=first.next_cursor)
    ids = [source.id for page in (first, second) for source in page.data_sources]
    assert (len(ids), ids[-1], first.total_count) == (4, "coverage", 4)
    assert second.next_cursor is None
    assert first.data_sources[0].origin == "builtin"


@pytest.mark.usefixtures("published")
async def test_facts_are_pushed_read_and_their_history_with_them(client: AsyncClient) -> None:
    early = {"entity": WEB, "facts": {"lines": 80}, "timestamp": "2026-11-20T12:00:00Z"}
    late = {"entity": WEB, "facts": {"lines": "much", "none": 1}}
    pushed = await client.push_facts("coverage", [early])
    assert (pushed.version, pushed.accepted_items) == ("1.0.0", 1)
    (item,) = pushed.items
    assert (item.accepted, item.stored, item.latest) == (True, ["lines"], True)
    pushed = await client.push_facts("coverage", [late])
    assert [problem.path for problem in pushed.items[0].problems] == [
        "items[0].facts.lines",
        "items[0].facts.none",
    ]
    await client.push_facts("coverage", [{"entity": WEB, "facts": {"lines": 82.5}}])
    found = await client.facts("coverage", entity=WEB)
    assert found.entities[0].facts == {"lines": 82.5}
    assert (await client.facts("coverage", limit=1)).next_cursor is None
    history = await client.fact_history(WEB, sources=["coverage"], limit=1)
    assert (history.entity_ref, history.items[0].facts) == (WEB, {"lines": 82.5})
    history = await client.fact_history(
        WEB, sources=["coverage"], end="2026-11-20T13:00:00Z", start="2026-11-19T12:00:00Z"
    )
    assert [past.facts for past in history.items] == [{"lines": 80}]
    assert history.items[0].timestamp == "2026-11-20T12:00:00.000+00:00"


@pytest.mark.usefixtures("published")
async def test_a_source_that_is_collected_is_run(client: AsyncClient) -> None:
    titles = {
        "id": "titles",
        "title": "Titles",
        "handlerDefinition": {"type": "entity", "config": {"id": "titles"}},
        "schema": {"name": {"type": "string", "extract": {"jmespath": "metadata.name"}}},
    }
    await client.put_data_source(titles)
    run = await client.run_data_source("titles", entity=WEB)
    assert (run.state, run.whole, run.entities) == ("running", False, 1)
    assert [each.id for each in await client.data_source_runs("titles")] == [run.id]
    with pytest.raises(ApiError, match="pushed") as caught:
        await client.run_data_source("coverage")
    assert caught.value.status == 409


async def test_a_definition_is_tried_and_nothing_stored(client: AsyncClient) -> None:
    await client.push("all", [component("web")])
    names = {
        "id": "names",
        "title": "Names",
        "handlerDefinition": {"type": "entity", "config": {"id": "names"}},
        "schema": {
            "name": {"type": "string", "extract": {"jmespath": "metadata.name"}},
            "size": {"type": "integer", "extract": {"jmespath": "metadata.name"}},
            "none": {"type": "string", "extract": {"jmespath": "metadata.title"}},
        },
    }
    tried = await client.test_data_source(names, WEB)
    assert tried.facts == {"name": "web"}
    assert tried.reasons == {
        "size": "bad-definition: schema.size.type: expected an integer, not this string",
        "none": "not-applicable: the document has no such value",
    }
    assert tried.answer is not None
    assert not tried.answer.truncated
    with pytest.raises(ApiError) as caught:
        await client.data_source("names")
    assert caught.value.status == 404
