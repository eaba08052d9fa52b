"""Files of sources that a member of the owning group applies with an editor's token."""

import json

import pytest

from factbook.auth import permissions
from tests.api.owning import KIM, OUR_WEB, OURS, THEIR_API, THEIRS, asking, connect, populated
from tests.cli.bridge import SOURCES, Run, custom_ids, definition, one, write
from tests.service import Service

pytestmark = pytest.mark.spec("roles.groups-write-what-they-own")


@pytest.fixture
async def kim(service: Service, served: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command with the token of an editor who is in the first group."""
    await populated(service)
    token = await service.token(*permissions.ROLES["editor"], owner=KIM)
    monkeypatch.setenv("FACTBOOK_TOKEN", token)
    return served


async def test_a_member_applies_changes_and_pushes_from_files(service: Service, kim: Run) -> None:
    file = write("ours.yaml", definition("ours", owner="team-a"))
    answer = await kim("sources", "apply", file, "--yes")
    assert "ours: published, version 1.0.0" in answer.stdout, answer.stderr
    assert (await one(service, "ours"))["owner"] == OURS
    assert (await kim("sources", "plan", file)).exit_code == 0
    changed = write("ours.yaml", definition("ours", owner="team-a", title="Other"))
    answer = await kim("sources", "apply", changed, "--yes")
    assert '~ title: "Coverage" → "Other"' in answer.stdout
    assert (await kim("push-facts", "ours", "--entity", OUR_WEB, "passed=true")).exit_code == 0
    refused = await kim("push-facts", "ours", "--entity", THEIR_API, "passed=true")
    assert refused.exit_code != 0
    assert f"leaves {THEIR_API} out" in refused.output


async def test_files_of_others_and_pruning_are_refused_with_the_reason(
    service: Service, kim: Run
) -> None:
    theirs = definition("theirs", owner=THEIRS)
    assert (await service.http.put(f"{SOURCES}/theirs", json=theirs)).status_code == 200
    new = write("new.yaml", definition("new", owner=THEIRS))
    answer = await kim("sources", "apply", new, "--yes")
    assert "A group of yours has to own this data source" in answer.stderr
    there = write("theirs.yaml", definition("theirs", owner="team-a"))
    answer = await kim("sources", "apply", there, "--yes")
    assert "This token cannot see how sources are defined." in answer.stderr
    assert "a group of yours has to own the source" in answer.stderr
    ours = write("ours.yaml", definition("ours", owner="team-a"))
    answer = await kim("sources", "apply", ours, "--yes", "--prune")
    assert answer.exit_code != 0
    assert await custom_ids(service) == ["ours", "theirs"]


async def test_a_connection_that_is_not_shared_is_told_with_its_path(
    service: Service, kim: Run
) -> None:
    await connect(service)
    answer = await kim("sources", "apply", write("ours.yaml", asking()), "--yes")
    assert "handlerDefinition.config.connection" in answer.stderr
    assert f"is not shared with {OURS}" in answer.stderr


async def test_the_list_of_collected_sources_names_owners_where_there_are_any(
    service: Service, kim: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FACTBOOK_TOKEN_KEY", "k" * 32)
    database = f"--database-url={service.database_url}"
    handler = {"type": "entity", "config": {"id": "nobodys"}}
    nobodys = asking("nobodys", handlerDefinition=handler)
    del nobodys["owner"]
    answer = await service.http.post(SOURCES, json=nobodys)
    assert answer.is_success, answer.text
    head, row = (await kim("sources", "list", database)).stdout.splitlines()
    assert head.split()[:2] == ["Source", "State"]
    assert row.split()[:2] == ["nobodys", "new"]
    await service.http.post(SOURCES, json=asking())
    head, *rows = (await kim("sources", "list", database)).stdout.splitlines()
    assert head.split()[:3] == ["Source", "Owner", "State"]
    assert [row.split()[:3] for row in rows] == [["nobodys", "new"], ["ours", OURS, "new"]]
    listed = json.loads((await kim("sources", "list", "--json", database)).stdout)
    assert [each.get("owner") for each in listed] == [None, OURS]
