"""`factbook serve` with an integration: one of its processes collects, whatever their number."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.fakes.github.app import FakeGitHub
from tests.fakes.github.state import Token
from tests.fakes.serving import served
from tests.integrations.github.asking import APP, TOKEN, full
from tests.processes import serving
from tests.service import PUSH, TOOLS, component
from tests.waiting import until

pytestmark = pytest.mark.system


def asked(client: httpx2.Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The result of a tool call."""
    call = {"name": tool, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answer = client.post(TOOLS, json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = json.loads(answer.json()["result"]["content"][0]["text"])
    return found


def test_of_two_processes_of_a_server_one_collects(database_url: str, tmp_path: Path) -> None:
    fake = FakeGitHub([full()], [Token(TOKEN)])
    with (
        served(fake) as url,
        serving(
            database_url,
            tmp_path,
            "--workers",
            "2",
            FACTBOOK_OUTGOING_NETWORKS="127.0.0.0/8",
            FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT__API_URL=url,
            FACTBOOK_INTEGRATIONS__GITHUB__DEFAULT__TOKEN=TOKEN,
        ) as server,
        server.client(server.token()) as client,
    ):
        entity = component("app")
        entity["metadata"]["annotations"] = {"github.com/project-slug": APP}
        pushed = client.put(f"{PUSH}/sets/all", json={"items": [entity]})
        assert pushed.status_code == 200

        def is_known() -> bool:
            found = asked(client, "get-codehost-metrics", name="app")
            return bool(found["issues"]["open"] != "unknown")

        until(is_known, told=server.log.read_text, pause=0.2)
        assert fake.requests == {"graphql": 1, "tree": 1}
