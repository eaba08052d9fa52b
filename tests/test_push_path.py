"""The main path with the product's own commands: push a catalog, ask for its facts."""

import json
from pathlib import Path

import pytest

from tests.processes import serving
from tests.sample_catalog import CATALOG


@pytest.mark.slow
def test_a_catalog_goes_in_through_factbook_push_and_answers_through_factbook_call(
    database_url: str, tmp_path: Path
) -> None:
    with serving(database_url, tmp_path) as server:
        server.environment["FACTBOOK_TOKEN"] = server.token()
        tried = server.invoke("push", "shop", str(CATALOG), "--dry-run", "--json")
        assert json.loads(tried)["changes"]["added"] == 9
        assert json.loads(server.invoke("sets", "--json")) == []

        server.invoke("push", "shop", str(CATALOG))
        [listed] = json.loads(server.invoke("sets", "--json"))
        assert (listed["id"], listed["itemCount"], listed["revision"]) == ("shop", 9, 1)

        answer = server.invoke("call", "get-entity-compliance", "name=billing")
        found = json.loads(answer)
        assert found["metadata"] == {
            "hasTitle": True,
            "hasDescription": True,
            "hasTags": True,
            "hasOwner": True,
        }
        assert found["ownership"]["hasGroupOwner"] is True
        facts = server.invoke("facts", "component:default/billing")
        assert "hasTechdocsRef" in facts

        again = json.loads(server.invoke("push", "shop", str(CATALOG), "--json"))
        assert again["changes"] == {"added": 0, "updated": 0, "removed": 0, "unchanged": 9}


@pytest.mark.slow
def test_a_refused_command_says_why_and_exits_with_its_own_code(
    tmp_path: Path,
) -> None:
    with serving(f"sqlite:///{tmp_path / 'factbook.db'}", tmp_path) as server:
        reader = server.token("--permission", "catalog.entity.read")
        server.environment["FACTBOOK_TOKEN"] = reader
        server.invoke("push", "shop", str(CATALOG), expect=3)
        server.environment["FACTBOOK_TOKEN"] = server.token()
        assert server.invoke("call", "get-entity-compliance", "name=nobody", expect=1) == ""
        server.invoke("push", "shop", str(tmp_path / "missing.yaml"), expect=2)
        server.stop()
        server.invoke("sets", expect=4)
