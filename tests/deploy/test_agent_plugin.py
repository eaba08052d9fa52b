"""What hosts of agents install: the entry of a registry, and a plugin with a skill."""

import json
import re
from pathlib import Path

from factbook.facts.schema import REASONS
from factbook.http.client_configs import PATH
from factbook.tools.toolsets import list_toolsets

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "deploy" / "agent-plugin"


def test_the_entry_of_a_registry_leads_to_the_endpoint_of_all_tools() -> None:
    entry = json.loads((ROOT / "server.json").read_text())
    assert re.fullmatch(r"[A-Za-z0-9.-]+/[A-Za-z0-9._-]+", entry["name"])
    # The registry's own bounds.
    assert len(entry["description"]) <= 100
    [remote] = entry["remotes"]
    assert remote["url"].endswith(PATH)
    named = set(re.findall(r"\{(\w+)\}", remote["url"]))
    assert named == remote["variables"].keys()
    [header] = remote["headers"]
    assert (header["name"], header["isSecret"]) == ("Authorization", True)
    assert set(re.findall(r"\{(\w+)\}", header["value"])) == header["variables"].keys()


def test_the_plugin_reaches_the_endpoint_of_all_tools_and_holds_no_token() -> None:
    manifest = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())
    servers = json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]
    assert servers[manifest["name"]]["url"] == f"${{FACTBOOK_SERVER}}{PATH}"
    assert servers[manifest["name"]]["headers"] == {"Authorization": "Bearer ${FACTBOOK_TOKEN}"}


def test_the_skill_names_tools_and_reasons_that_there_are() -> None:
    _, head, text = (PLUGIN / "skills" / "factbook" / "SKILL.md").read_text().split("---\n", 2)
    assert "name: factbook\n" in head
    assert len(head) < 1_024
    known = {tool.name for one in list_toolsets() for tool in one.tools}
    named = set(re.findall(r"`((?:get|find)-[a-z-]+)`", text))
    assert named <= known
    assert len(named) > 10
    reasons = set(re.findall(r"`((?:not|no|rate|upstream)-[a-z]+|forbidden)`", text))
    assert reasons
    assert reasons <= REASONS.keys()
