"""The pages of data sources for members of the groups that own them."""

from typing import Any

import pytest

from factbook.auth import permissions
from factbook.datasources.custom import yaml_text
from tests.api.defining import define, of_entities, pushed, shown
from tests.api.owning import OUR_WEB, OURS, THEIR_API, THEIRS, asking, connect, populated
from tests.service import Service
from tests.web.editing import seen
from tests.web.visiting import Browser, signed_in, words

pytestmark = pytest.mark.spec("roles.groups-write-what-they-own")
NEW, EDIT = "/data-sources/new", "/data-sources/{}/edit"


@pytest.fixture
async def kim(service: Service) -> Browser:
    """An editor who is in the first of two groups, each with a source."""
    await populated(service)
    await define(service, of_entities("ours", owner=OURS))
    await define(service, of_entities("theirs", owner=THEIRS))
    await define(service, of_entities("nobodys"))
    return await signed_in(service, "kim", permissions.EDITOR)


def text(**members: Any) -> str:
    return yaml_text.write_yaml(of_entities(**members))


async def test_a_member_makes_changes_publishes_runs_and_deletes_the_source_of_the_group(
    service: Service, kim: Browser
) -> None:
    assert "Define a source" in words(await kim.text("/data-sources"))
    begun = await kim.text(NEW, type="entity", id="new-one")
    assert f"owner: &#34;{OURS}&#34;" in begun or f'owner: "{OURS}"' in begun
    html = await kim.done(NEW, text=text(id_="new-one", owner=OURS), do="save")
    changed = text(id_="new-one", owner=OURS, title="Another")
    done = await kim.done(EDIT.format("new-one"), text=changed, do="publish", seen=seen(html))
    assert "Version 1.0.0 is published." in words(done)
    page = words(await kim.text("/data-sources/new-one"))
    assert "Owner team-a" in page
    assert "Run now" in page
    assert "Run" in words(await kim.done("/data-sources/new-one/runs"))
    assert "was deleted" in words(await kim.done("/data-sources/new-one/delete"))
    query = {"actor": "user:default/kim", "outcome": "done"}
    records = (await service.http.get("/api/access/v1/audit", params=query)).json()["records"]
    of_sources = [one for one in records if one["action"].startswith("data-source.")]
    assert {one["grant"] for one in of_sources} == {f"group {OURS}"}
    assert len(of_sources) == 5


@pytest.mark.parametrize("id_", ["theirs", "nobodys"])
async def test_of_others_a_member_is_shown_no_button_and_writes_nothing(
    service: Service, kim: Browser, id_: str
) -> None:
    html = await kim.text(f"/data-sources/{id_}")
    for path in ("edit", "delete", "publish"):
        assert f"/data-sources/{id_}/{path}" not in html
    assert "Run now" not in html
    assert "Definition, published" not in words(html)
    await kim.text(EDIT.format(id_), 403)
    before = await service.state.database.one(
        "SELECT updated_at FROM data_sources WHERE id = ?", (id_,)
    )
    mine = text(id_=id_, owner=OURS)
    for path, fields in (
        (EDIT.format(id_), {"text": mine, "do": "save", "over": str(before and before[0])}),
        (EDIT.format(id_), {"text": mine, "do": "try", "entity": OUR_WEB}),
        (f"/data-sources/{id_}/publish", {"force": "yes"}),
        (f"/data-sources/{id_}/delete", {}),
        (f"/data-sources/{id_}/runs", {}),
        (NEW, {"text": mine, "do": "save"}),
        (NEW, {"text": mine, "do": "try", "entity": OUR_WEB}),
    ):
        answer = await kim.send(path, **fields)
        assert answer.status_code == 403, (path, answer.text)
        assert "A group of yours has to own this data source" in words(answer.text)
    assert (await shown(service, id_)).get("owner") != OURS


async def test_a_new_source_has_to_be_of_a_group_of_its_author(
    service: Service, kim: Browser
) -> None:
    for owner in ({"owner": THEIRS}, {}):
        answer = await kim.send(NEW, text=text(id_="new-one", **owner), do="publish")
        assert answer.status_code == 403
        assert "A group of yours has to own this data source" in words(answer.text)
        assert "Nothing was saved" in words(answer.text)
    assert (await service.http.get("/api/tech-insights/v1/data-sources/new-one")).status_code == 404


async def test_the_editor_of_an_owner_has_no_kind_that_reads_repositories(kim: Browser) -> None:
    page = await kim.text(NEW)
    assert 'value="http"' in page
    assert 'value="repository-file"' not in page
    await kim.text(NEW, 400, type="repository-file", id="more")


async def test_an_editor_is_shown_the_connections_of_the_own_groups_and_no_way_to_change_them(
    service: Service, kim: Browser
) -> None:
    assert "None is shared with a group of yours" in await kim.text(NEW, type="http", id="builds")
    await connect(service, OURS)
    await connect(service, THEIRS, name="secretive")
    html = await kim.text(NEW, type="http", id="builds")
    assert "https://ci.test/api" in html
    assert "secretive" not in html
    assert "/administration/connections" not in html
    document = yaml_text.write_yaml(asking("builds", "secretive"))
    for do in ("save", "try"):
        answer = await kim.send(NEW, text=document, do=do, entity=OUR_WEB)
        assert answer.status_code == 400
        assert "is not shared with group:default/team-a" in words(answer.text)
    await kim.text("/administration/connections", 403)


async def test_a_trial_of_an_entity_of_others_is_refused(kim: Browser) -> None:
    html = await kim.text(EDIT.format("ours"))
    answer = await kim.send(
        EDIT.format("ours"),
        text=text(id_="ours", owner=OURS),
        do="try",
        entity=THEIR_API,
        seen=seen(html),
    )
    assert answer.status_code == 400
    assert f"leaves {THEIR_API} out" in words(answer.text)


async def test_who_is_in_no_group_is_shown_no_button(service: Service, kim: Browser) -> None:
    eve = await signed_in(service, "eve", permissions.EDITOR)
    assert EDIT.format("ours") not in await eve.text("/data-sources/ours")
    begun = await eve.text(NEW, type="push", id="mine")
    assert "owner:" not in begun


async def test_the_owner_is_in_the_list_and_the_connection_says_with_whom_it_is_shared(
    service: Service, kim: Browser
) -> None:
    listed = words(await kim.text("/data-sources"))
    assert "owned by team-a" in listed
    ada = await signed_in(service)
    path = "/administration/connections"
    fields = {"name": "ci", "base_url": "https://ci.test", "methods": "GET", "at_once": "4"}
    wrong = await ada.send(f"{path}/new", **fields, shared_with="group:\nteam-a")
    assert wrong.status_code == 400
    assert "Owners" in words(wrong.text)
    assert "group:\nteam-a" in wrong.text
    await ada.done(f"{path}/new", **fields, shared_with="team-b\nteam-a\n\n")
    html = await ada.text(f"{path}/ci/edit")
    assert f"{OURS}\n{THEIRS}" in html
    changed = fields | {"shared_with": f"{OURS}"}
    assert "team-a" in words(await ada.done(f"{path}/ci/edit", **changed))
    found = (await service.http.get("/api/tech-insights/v1/connections/ci")).json()
    assert found["sharedWith"] == [OURS]


async def test_lines_that_push_are_shown_to_a_member(service: Service, kim: Browser) -> None:
    await define(service, pushed("figures", owner=OURS))
    assert "Push facts" in words(await kim.text("/data-sources/figures"))
