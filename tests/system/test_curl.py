"""The main path with curl, as the mission writes the calls."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.processes import ServerProcess, serving
from tests.sample_catalog import entities

pytestmark = [pytest.mark.system, pytest.mark.spec("push.as-the-seed-writes-it")]


def curl(*arguments: str) -> Any:
    done = subprocess.run(
        ["curl", "--silent", "--show-error", "--fail-with-body", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def call(server: ServerProcess, token: str, tool: str, arguments: dict[str, Any]) -> Any:
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "method": "tools/call", "params": params, "id": 1}
    return curl(
        "-X", "POST", f"{server.url}/api/mcp/v1/tech-insights-facts",
        "-H", "Content-Type: application/json",
        "-H", "Accept: application/json, text/event-stream",
        "-H", f"Authorization: Bearer {token}",
        "-d", json.dumps(message),
    )  # fmt: skip


def test_a_catalog_goes_in_and_answers_through_curl(database_url: str, tmp_path: Path) -> None:
    body = tmp_path / "body.json"
    body.write_text(json.dumps({"items": entities()}))
    with serving(database_url, tmp_path) as server:
        token = server.token()
        pushed = curl(
            "-X", "PUT", f"{server.url}/api/catalog/factbook-entities/sets/shop",
            "-H", "Content-Type: application/json",
            "-H", f"Authorization: bearer {token}",
            "--data-binary", f"@{body}",
        )  # fmt: skip
        assert pushed["set"] == "shop"
        assert len(pushed["items"]) == 9
        listed = curl(
            f"{server.url}/api/catalog/entities",
            "-H", "Accept: application/json",
            "-H", f"Authorization: Bearer {token}",
        )  # fmt: skip
        assert {entity["metadata"]["uid"] for entity in listed} == {
            item["id"] for item in pushed["items"]
        }
        sources = call(server, token, "get-data-source-discovery", {})["result"]
        ids = [source["id"] for source in sources["structuredContent"]["dataSources"]]
        assert ids == ["entity-metadata", "entity-ownership", "techdocs"]
        for id_ in ids:
            answer = call(
                server, token, "get-all-entities-facts", {"dataSourceId": id_, "kind": "*"}
            )
            assert len(answer["result"]["structuredContent"]["entities"]) == 9
        one = {"dataSourceId": "techdocs", "name": "checkout"}
        answer = call(server, token, "get-entity-facts", one)["result"]
        assert answer["structuredContent"]["facts"] == {"hasTechdocsRef": True}
        assert json.loads(answer["content"][0]["text"]) == answer["structuredContent"]
