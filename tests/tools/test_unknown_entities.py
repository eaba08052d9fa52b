"""get-all-entities-facts: the entities that a source is about and knows nothing of."""

from typing import Any

import pytest

from factbook.integrations import SOURCES
from factbook.tools import all_entities_facts
from tests.conftest import StartService
from tests.service import Service, component, resource
from tests.tools.checks import structured
from tests.tools.sources import COVERAGE, record

pytestmark = pytest.mark.spec("unknown.entities-without-facts-are-counted-and-listed")

TOOL = "get-all-entities-facts"
NAMES = ("broken", "denied", "good", "hidden", "new")


@pytest.fixture
async def filled(start: StartService) -> Service:
    """Five components, of one of which something is known, and what the source is not about."""
    service = await start(sources=[*SOURCES, COVERAGE])
    answer = await service.push("first", *map(component, NAMES), resource("database"))
    assert answer.status_code == 200, answer.text
    await record(service, ref("good"), {"lines": 1, "green": True})
    await record(service, ref("hidden"), {}, reasons={"": "not-found"})
    await record(service, ref("denied"), {}, reasons={"": "forbidden: needs contents"})
    failing = {"lines": "upstream-error", "tool": "forbidden"}
    await record(service, ref("broken"), {}, reasons=failing, passing=failing)
    return service


def ref(name: str) -> str:
    return f"component:default/{name}"


async def ask(service: Service, source: str = "coverage", **arguments: Any) -> dict[str, Any]:
    return structured(TOOL, await service.ask(TOOL, dataSourceId=source, **arguments))


def refs(found: dict[str, Any]) -> list[str]:
    return [entity["entityRef"] for entity in found["entities"]]


async def test_entities_of_which_nothing_is_known_are_counted_by_reason(filled: Service) -> None:
    for kind in ("component", "*"):
        found = await ask(filled, kind=kind)
        assert refs(found) == [ref("good")]
        assert found["unknownEntities"] == {
            "count": 4,
            "reasons": {
                "forbidden": 2,
                "never-collected": 1,
                "not-found": 1,
                "upstream-error": 1,
            },
        }
    assert (await ask(filled, namespace="away"))["unknownEntities"] == {"count": 0, "reasons": {}}
    assert (await ask(filled, kind="api"))["unknownEntities"] == {"count": 0, "reasons": {}}


async def test_entities_of_which_nothing_is_known_are_listed_with_their_reasons(
    filled: Service,
) -> None:
    found = await ask(filled, unknown=True, kind="*")
    assert {one["entityRef"]: one["unknownReasons"] for one in found["entities"]} == {
        ref("broken"): {"lines": "upstream-error", "tool": "forbidden"}
        | dict.fromkeys(["share", "green", "ranAt", "branches", "raw"], "never-collected"),
        ref("denied"): {"*": "forbidden: needs contents"},
        ref("hidden"): {"*": "not-found"},
        ref("new"): {"*": "never-collected"},
    }
    assert all(one["facts"] == {} and "timestamp" not in one for one in found["entities"])
    assert "unknownEntities" not in found


async def test_the_list_of_unknown_entities_has_pages_and_keeps_to_named_facts(
    filled: Service,
) -> None:
    asked: dict[str, Any] = {"unknown": True, "limit": 2, "facts": ["green"]}
    first = await ask(filled, **asked)
    assert (refs(first), first["totalCount"]) == ([ref("broken"), ref("denied")], 4)
    last = await ask(filled, **asked, cursor=first["nextCursor"])
    assert (refs(last), last["totalCount"]) == ([ref("hidden"), ref("new")], 4)
    assert "nextCursor" not in last
    reasons = [one["unknownReasons"] for page in (first, last) for one in page["entities"]]
    assert reasons == [
        {"green": "never-collected"},
        {"green": "forbidden: needs contents"},
        {"green": "not-found"},
        {"green": "never-collected"},
    ]


async def test_facts_without_a_value_have_reasons_beside_those_that_have_one(
    filled: Service,
) -> None:
    [found] = (await ask(filled))["entities"]
    assert found["facts"] == {"lines": 1, "green": True}
    names = ["share", "tool", "ranAt", "branches", "raw"]
    assert found["unknownReasons"] == dict.fromkeys(names, "never-collected")
    [found] = (await ask(filled, facts=["lines", "tool"]))["entities"]
    assert found["facts"] == {"lines": 1}
    assert found["unknownReasons"] == {"tool": "never-collected"}
    [found] = (await ask(filled, facts=["lines"]))["entities"]
    assert "unknownReasons" not in found


async def test_the_count_is_on_the_first_page_alone(filled: Service) -> None:
    await record(filled, ref("new"), {"lines": 2})
    first = await ask(filled, limit=1)
    assert first["unknownEntities"]["count"] == 3
    assert "unknownEntities" not in await ask(filled, limit=1, cursor=first["nextCursor"])


async def test_of_very_many_the_count_says_that_there_are_more(
    filled: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all_entities_facts.COUNTED == 10_000
    monkeypatch.setattr(all_entities_facts, "COUNTED", 100)
    await filled.push("many", *(component(f"n{number}") for number in range(100)))
    found = (await ask(filled, limit=1))["unknownEntities"]
    assert (found["count"], found["more"]) == (100, True)
    listed = await ask(filled, unknown=True, limit=1)
    assert "totalCount" not in listed
    assert "nextCursor" in listed


async def test_the_catalog_knows_something_of_every_entity(filled: Service) -> None:
    for source in SOURCES[:3]:
        assert "unknownEntities" not in await ask(filled, source.id)
        found = await ask(filled, source.id, unknown=True, limit=5)
        assert (found["entities"], found["totalCount"]) == ([], 0)


async def test_entities_that_the_filter_leaves_out_are_not_unknown(filled: Service) -> None:
    await record(filled, "resource:default/database", {}, reasons={"": "not-found"})
    assert "resource:default/database" not in refs(await ask(filled, unknown=True, kind="*"))
