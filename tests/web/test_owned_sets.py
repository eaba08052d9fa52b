"""The page of a revision for members of the group that owns every entity of the set."""

import pytest

from factbook.auth import permissions
from tests.service import Service, component
from tests.web.scoring import group, person
from tests.web.visiting import Browser, signed_in, words

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
RESTORED = "/sets/{}/revisions/1/restore"


@pytest.fixture
async def mia(service: Service) -> Browser:
    await service.push("people", group("team-a"), person("mia", "team-a"))
    for name, owner in (("ours", "team-a"), ("theirs", "team-b")):
        await service.push(name, component(f"{name}-1", owner=owner))
        await service.push(name, component(f"{name}-2", owner=owner))
    return await signed_in(service, "mia", permissions.EDITOR)


@pytest.mark.spec("roles.groups-write-what-they-own")
async def test_a_member_restores_the_set_of_the_group(service: Service, mia: Browser) -> None:
    page = await mia.text("/sets/ours/revisions/1")
    assert RESTORED.format("ours") in page
    done = await mia.done(RESTORED.format("ours"), seen="2")
    assert "The set was restored to revision 1" in words(done)
    query = {"action": "set.restore"}
    [record] = (await service.http.get("/api/access/v1/audit", params=query)).json()["records"]
    assert record["grant"] == "group group:default/team-a"


@pytest.mark.spec("roles.groups-write-what-they-own")
async def test_a_member_restores_no_set_of_others(mia: Browser) -> None:
    page = await mia.text("/sets/theirs/revisions/1")
    assert RESTORED.format("theirs") not in page
    for take in ("", "yes"):
        answer = await mia.send(RESTORED.format("theirs"), seen="2", take=take)
        assert answer.status_code == 403
