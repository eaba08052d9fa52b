"""The main path with the product's own commands: push the real catalog, ask for its facts."""

import json
from pathlib import Path

import pytest

from tests.processes import ServerProcess, serving


def test_the_real_catalog_goes_in_through_factbook_push_and_answers_through_factbook_call(
    database_url: str, tmp_path: Path, test_data: Path
) -> None:
    catalog = test_data / "catalogs" / "plugins.yaml"
    with serving(database_url, tmp_path) as server:
        server.environment["FACTBOOK_TOKEN"] = server.token()
        tried = server.command("push", "plugins", str(catalog), "--dry-run", "--json")
        assert json.loads(tried)["changes"]["added"] == 23
        assert json.loads(server.command("sets", "--json")) == []

        server.command("push", "plugins", str(catalog))
        [listed] = json.loads(server.command("sets", "--json"))
        assert (listed["id"], listed["itemCount"], listed["revision"]) == ("plugins", 23, 1)

        answer = server.command("call", "get-entity-compliance", "name=backstage-plugin-aws-auth")
        found = json.loads(answer)
        assert found["metadata"] == {
            "hasTitle": True,
            "hasDescription": True,
            "hasTags": True,
            "hasOwner": True,
        }
        assert found["ownership"]["hasGroupOwner"] is True
        facts = server.command("facts", "component:default/backstage-plugin-aws-auth")
        assert "hasTechdocsRef" in facts

        again = json.loads(server.command("push", "plugins", str(catalog), "--json"))
        assert again["changes"] == {"added": 0, "updated": 0, "removed": 0, "unchanged": 23}


def test_a_refused_command_says_why_and_exits_with_its_own_code(
    tmp_path: Path, test_data: Path
) -> None:
    catalog = str(test_data / "catalogs" / "plugins.yaml")
    with serving(f"sqlite:///{tmp_path / 'factbook.db'}", tmp_path) as server:
        reader = server.token("--permission", "catalog.entity.read")
        server.environment["FACTBOOK_TOKEN"] = reader
        server.command("push", "plugins", catalog, expect=3)
        server.environment["FACTBOOK_TOKEN"] = server.token()
        assert server.command("call", "get-entity-compliance", "name=nobody", expect=1) == ""
        server.command("push", "plugins", str(tmp_path / "missing.yaml"), expect=2)
        server.stop()
        server.command("sets", expect=4)


@pytest.mark.parametrize("command", ["serve", "migrate", "push", "facts", "call", "token"])
def test_every_command_explains_itself(command: str, tmp_path: Path) -> None:
    server = ServerProcess(f"sqlite:///{tmp_path / 'factbook.db'}", tmp_path)
    assert "Usage" in server.command(command, "--help")
