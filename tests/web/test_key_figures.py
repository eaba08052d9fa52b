"""The figures that the page of an entity shows first."""

import pytest

from factbook.clock import DAY
from factbook.integrations import SOURCES as CATALOGS
from tests.conftest import StartService
from tests.service import Service, component
from tests.web.entities import REF, WEB
from tests.web.knowing import SOURCES, write
from tests.web.markup import elements
from tests.web.visiting import signed_in, words


@pytest.fixture
async def knowing(start: StartService) -> Service:
    """A service with a component, the catalog's own sources and two others."""
    service = await start(sources=[*CATALOGS, *SOURCES])
    await service.push("all", component("web"))
    return service


async def figures(service: Service, name: str = "ada") -> list[tuple[str, str]]:
    """The text and the link of each figure."""
    page = await (await signed_in(service, name)).text(WEB)
    paths = [each["href"] for tag, each in elements(page) if "key-figure" in each.get("class", "")
             and tag == "a"]  # fmt: skip
    tiles = page.split('class="tile key-figure"')[1:]
    return [
        (words("<a" + tile.partition("</a>")[0]), path)
        for tile, path in zip(tiles, paths, strict=True)
    ]


async def test_each_figure_shows_its_change_in_a_week_and_leads_to_its_fact(
    knowing: Service,
) -> None:
    await write(knowing, REF, {"deployments": 12, "leadTime": 4.0, "onCall": False})
    knowing.time.advance(8 * DAY)
    await write(knowing, REF, {"deployments": 15, "leadTime": 2.5, "onCall": True})
    assert await figures(knowing) == [
        ("Deployments 15 +3 in a week", f"{WEB}/facts/deliveries/deployments"),
        (
            "Lead time 2.5 hours \N{MINUS SIGN}1.5 hours in a week",
            f"{WEB}/facts/deliveries/leadTime",
        ),
        ("On call yes a week ago: no", f"{WEB}/facts/deliveries/onCall"),
    ]


async def test_without_a_value_of_a_week_ago_the_source_is_named(knowing: Service) -> None:
    await write(knowing, REF, {"deployments": 12})
    assert [text for text, _ in await figures(knowing)] == ["Deployments 12 Deliveries"]
    knowing.time.advance(8 * DAY)
    await write(knowing, REF, {"deployments": 12})
    assert [text for text, _ in await figures(knowing, "b")] == [
        "Deployments 12 same as a week ago"
    ]


async def test_figures_of_shapes_come_before_those_of_other_facts(knowing: Service) -> None:
    values = {"codehost.pullRequests.open": 4, "deployments": 1, "slashed/name": 2, "onCall": True}
    await write(knowing, REF, {**values, "codehost.pullRequests.total": 9, "failureRate": 3.0})
    found = [text for text, _ in await figures(knowing)]
    assert found == ["Deployments 1 Deliveries", "Failure rate 3 % Deliveries",
                     "On call yes Deliveries"]  # fmt: skip


async def test_a_setting_chooses_the_figures_and_their_order(start: StartService) -> None:
    service = await start(
        sources=[*CATALOGS, *SOURCES],
        key_figures=["regions", "deliveries:deployments", "annotated:deployments", "nothing"],
    )
    await service.push("all", component("web"))
    await write(service, REF, {"deployments": 12, "onCall": True, "regions": ["eu", "us"]})
    assert [text for text, _ in await figures(service)] == [
        "Regions 2 Deliveries",
        "Deployments 12 Deliveries",
    ]


async def test_what_a_source_no_longer_brings_is_no_figure(knowing: Service) -> None:
    await write(knowing, REF, {"deployments": 12})
    knowing.time.advance(8 * DAY)
    await write(knowing, REF, {"restoreTime": 5_400.0})
    assert [text for text, _ in await figures(knowing)] == ["Restore time 1 h 30 min Deliveries"]
