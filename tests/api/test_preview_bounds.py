"""What previews of a working tree do not tell, and what they do not do for somebody who reads."""

from typing import Any

import pytest

from tests.api.checking import COVERED, OWNED, check, evaluated, put, with_source
from tests.api.defining import item, push, refusal
from tests.api.test_entity_previews import PREVIEW, preview, told
from tests.conftest import StartService
from tests.service import Service, component

WEB, API, NEW = (f"component:default/{name}" for name in ("web", "api", "new"))
LINES = "{{ facts.coverage['lines'] }}"
MARK = "acme.example/imported"


@pytest.fixture
async def service(start: StartService) -> Service:
    """A component of a set, with a pushed fact that texts of checks show."""
    service = await start()
    await with_source(service)
    imported = component("web")
    imported["metadata"]["annotations"] = {
        "factbook/import-origin": "github/acme/shop",
        "github.com/project-slug": "acme/hidden",
    }
    assert (await service.push("shop", imported)).status_code == 200
    await push(service, item(WEB, lines=77))
    owner = {**OWNED, "operator": "equal", "value": "team-a"}
    messages = {
        "fail": f"{LINES} lines at {{{{ metadata.annotations['github.com/project-slug'] }}}}"
    }
    fix = {"link": f"https://wiki.test/{LINES}", "instructions": f"Add to {LINES}"}
    both = {"all": [owner, {**COVERED, "value": 70}]}
    await put(service, check("both", rule=both, messages=messages, fix=fix), publish=True)
    old = {"kind": "component", "spec.lifecycle": "old"}
    covered = check("covered", appliesTo=old, messages={"fail": LINES}, fix=fix)
    await put(service, covered, publish=True)
    await evaluated(service)
    return service


def moved() -> dict[str, Any]:
    """The component as a stranger's tree has it, so that both checks fail."""
    return component("web", owner="team-b", lifecycle="old")


async def test_what_is_stored_of_an_entity_is_not_told_to_a_tree_that_names_it(
    service: Service,
) -> None:
    answer = await preview(service, moved())
    assert told(answer) == {
        f"both {WEB}": ("pass", "fail", True, True),
        f"covered {WEB}": ("not-applicable", "fail", False, False),
    }
    both, covered = answer["results"]
    assert (both["message"], both["fix"]) == (
        "unknown lines at unknown",
        {"instructions": "Add to unknown"},
    )
    assert [(one["fact"], one["value"]) for one in both["because"]] == [("spec.owner", "team-b")]
    assert not {"message", "fix", "because"} & covered.keys()
    other = await preview(service, moved(), set="another")
    assert other["results"] == answer["results"]


async def test_what_is_stored_is_told_of_entities_in_the_set_that_is_named(
    service: Service,
) -> None:
    answer = await preview(service, moved(), component("new", lifecycle="old"), set="shop")
    both, covered = (one for one in answer["results"] if one["entityRef"] == WEB)
    assert (both["message"], both["fix"]["link"]) == (
        "77 lines at acme/hidden",
        "https://wiki.test/77",
    )
    assert {one["fact"]: one["value"] for one in both["because"]} == {
        "spec.owner": "team-b",
        "lines": 77,
    }
    assert covered["message"] == "77"


async def test_facts_of_an_entity_that_was_removed_are_not_told_of_a_new_one(
    service: Service,
) -> None:
    assert (await service.push("shop", component("other"))).status_code == 200
    answer = await preview(service, moved(), set="shop")
    assert answer["entities"] == [{"entityRef": WEB, "change": "added"}]
    assert "77" not in str(answer)


async def test_items_that_reach_very_many_entities_are_refused(service: Service) -> None:
    hub = component("hub")
    hub["spec"]["dependsOn"] = [f"component:part-{number}" for number in range(2_001)]
    answer = await service.http.post(PREVIEW, json={"items": [hub]})
    assert "more than 2,000 other entities" in refusal(answer, 400)
    # With its owner.
    del hub["spec"]["dependsOn"][1_999:]
    assert len((await preview(service, hub))["entities"]) == 1


@pytest.mark.slow
async def test_an_owner_whom_very_many_entities_name_is_refused(service: Service) -> None:
    named = [component(f"part-{number}", owner="team-z") for number in range(2_001)]
    assert (await service.push("parts", *named)).status_code == 200
    group: dict[str, Any] = component("team-z")
    group |= {"kind": "Group", "spec": {"type": "team", "children": []}}
    answer = await service.http.post(PREVIEW, json={"items": [group]})
    assert "more than 2,000 other entities" in refusal(answer, 400)
    assert (await service.push("parts", *named[1:])).status_code == 200
    assert (await preview(service, group))["entities"][0]["change"] == "added"
