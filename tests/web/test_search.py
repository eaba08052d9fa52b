"""The search from anywhere: order of the results, their sorts, and who finds what."""

import re
from typing import Any

import pytest

from factbook.web.search import BEGINS, SAME, WITHIN, WORD, rank_names
from tests.service import Service, component
from tests.web.markup import HOSTILE, hrefs, is_harmless
from tests.web.visiting import signed_in, words


def titled(name: str, kind: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "backstage.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"type": "team", "children": [], **spec},
    }


def group(page: str, title: str) -> str:
    """The part of a page with the results of a sort."""
    found = re.search(rf'<section[^>]*aria-label="{title}">.*?</section>', page, re.S)
    return found[0] if found else ""


def test_a_name_fits_as_well_as_the_text_stands_in_it(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, int | None]] = [
        ("payments", SAME),
        ("Payments API", BEGINS),
        ("the-payments", WORD),
        ("cardPayments", WORD),
        ("prepayments", WITHIN),
        ("billing", None),
    ]
    for name, expected in cases:
        with subtests.test(name=name):
            assert rank_names("payments", [name]) == expected


def test_the_best_of_several_names_counts() -> None:
    assert rank_names("pay", ["a payroll", "pay"]) == SAME
    assert rank_names("pay", []) is None


async def test_the_same_name_stands_before_a_beginning_and_a_word(service: Service) -> None:
    visitor = await signed_in(service)
    names = ["a-pay-gate", "pay", "prepay", "pay-gate"]
    await service.push("all", *(component(name) for name in names))
    found = hrefs(group(await visitor.text("/search?q=Pay"), "Entities"))
    assert [path.rpartition("/")[2] for path in found] == [
        "pay",
        "pay-gate",
        "a-pay-gate",
        "prepay",
    ]


async def test_names_are_found_where_many_entities_have_the_text(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", *(component(f"a-{number}-shop") for number in range(200)))
    await service.push("one", component("shop"))
    page = group(await visitor.text("/search?q=shop"), "Entities")
    assert hrefs(page)[0] == "/catalog/component/default/shop"
    assert "All 201 in the catalog" in words(page)
    assert "/catalog?q=shop" in hrefs(page)


async def test_people_are_found_by_their_display_names(service: Service) -> None:
    visitor = await signed_in(service)
    person = titled("jd", "User", profile={"displayName": "Jane Doe"}, memberOf=[])
    await service.push("all", person, titled("jazz", "Group"), component("jane"))
    page = await visitor.text("/search?q=ja")
    assert set(hrefs(group(page, "People and teams"))) == {
        "/catalog/user/default/jd",
        "/catalog/group/default/jazz",
    }
    assert "Jane Doe" in words(group(page, "People and teams"))
    assert "/catalog/component/default/jane" in hrefs(group(page, "Entities"))


async def test_facts_sources_sections_and_headings_are_found_by_their_titles(
    service: Service,
) -> None:
    visitor = await signed_in(service)
    page = await visitor.text("/search?q=owner")
    assert any("/data-sources/" in path for path in hrefs(group(page, "Facts")))
    assert "/sets" in hrefs(group(await visitor.text("/search?q=sets"), "Pages"))
    assert "/help/how-to/push" in hrefs(
        group(await visitor.text("/search?q=push"), "Documentation")
    )


@pytest.mark.slow
async def test_headings_lead_to_places_that_the_documentation_has(service: Service) -> None:
    visitor = await signed_in(service)
    found = hrefs(group(await visitor.text("/search?q=e"), "Documentation"))
    for path in found:
        page, _, anchor = path.partition("#")
        assert not anchor or f'id="{anchor}"' in await visitor.text(page)


async def test_without_a_text_and_without_a_result_it_says_so(service: Service) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("pay"))
    assert "Entities, people, checks, facts, sources and pages." in words(
        await visitor.text("/search")
    )
    assert "Nothing has this name." in words(await visitor.text("/search?q=qqqq"))


@pytest.mark.both_databases
async def test_any_text_can_be_looked_for(service: Service, subtests: pytest.Subtests) -> None:
    visitor = await signed_in(service)
    await service.push("all", component("pay"))
    for text in ["%", "_", "\\", "'", "%00", "%01", "%F4%8F%BF%BF", "a" * 5_000]:
        with subtests.test(text=text):
            assert group(await visitor.text(f"/search?q={text}"), "Entities") == ""


async def test_what_is_looked_for_and_found_does_no_harm(service: Service) -> None:
    visitor = await signed_in(service)
    item = component("pay")
    item["metadata"] |= {"title": f"pay {HOSTILE}", "description": HOSTILE}
    await service.push("all", item)
    assert is_harmless(await visitor.text("/search?q=pay"))
    assert is_harmless(await visitor.text("/search?q=%3Cscript%3Ealert(1)%3C/script%3E"))
