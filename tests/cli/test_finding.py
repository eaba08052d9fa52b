"""What `factbook entities` and `facets` say beside what they find, asked of a real service."""

import pytest

from tests.cli.bridge import Run
from tests.service import Service, component


@pytest.fixture
async def catalog(service: Service) -> Service:
    await service.push("all", *(component(f"c{number}") for number in range(5)))
    return service


async def test_a_listing_counts_what_it_shows_and_what_the_limit_leaves_out(
    catalog: Service, served: Run
) -> None:
    assert (await served("entities")).stderr == "5 entities\n"
    assert (await served("entities", "--limit", "2")).stderr == "2 of 5 entities\n"
    assert (await served("entities", "--limit", "5")).stderr == "5 entities\n"
    narrow = await served("entities", "--filter", "metadata.name=c1", "--limit", "9")
    assert narrow.stderr == "1 entity\n"
    searched = await served("entities", "--search", "c", "--limit", "3")
    assert searched.stderr == "3 of 5 entities\n"
    assert len(searched.stdout.splitlines()) == 4
    assert (await served("entities", "--json")).stderr == ""


async def test_a_filter_by_a_field_that_no_entity_has_says_so(
    catalog: Service, served: Run
) -> None:
    typo = await served("entities", "--filter", "kind=component,spec.ownr=team-a")
    assert (typo.exit_code, typo.stdout.splitlines()[1:]) == (0, [])
    told = 'No entity has the field "spec.ownr" (did you mean spec.owner?).\n'
    assert typo.stderr == told + "0 entities\n"
    assert (await served("entities", "--filter", "spec.ownr=x", "--json")).stderr == told
    other = await served("entities", "--filter", "quite.another=x", "--filter", "kind=component")
    assert other.stderr == 'No entity has the field "quite.another".\n5 entities\n'


async def test_a_filter_by_a_value_that_no_entity_has_blames_no_field(
    catalog: Service, served: Run
) -> None:
    for condition in ("spec.owner=nobody", "kind=api", "relations.ownedBy=group:default/none"):
        assert (await served("entities", "--filter", condition)).stderr == "0 entities\n"


async def test_counts_by_a_field_that_no_entity_has_say_so(catalog: Service, served: Run) -> None:
    answer = await served("facets", "spec.typ", "kind")
    assert answer.stdout.splitlines()[1].split() == ["kind", "Component", "5"]
    assert answer.stderr == 'No entity has the field "spec.typ" (did you mean spec.type?).\n'
    assert (await served("facets", "kind")).stderr == ""
    narrow = await served("facets", "kind", "--filter", "spec.lifecycel=x")
    assert narrow.stderr == (
        'No entity has the field "spec.lifecycel" (did you mean spec.lifecycle?).\n'
    )
