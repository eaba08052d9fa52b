"""The pages of clients have every agent that `factbook connect` knows, and every method."""

import re

from factbook.client import Client
from factbook.http.client_configs import AGENTS
from tests.docs.parts import DOCS

CONNECT = (DOCS / "how-to" / "connect.md").read_text()
CLIENT = (DOCS / "reference" / "client.md").read_text()


def test_every_agent_has_its_section_with_the_command_for_it() -> None:
    sections = dict(
        re.findall(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", CONNECT, re.DOTALL | re.MULTILINE)
    )
    for name, agent in AGENTS.items():
        assert f"factbook connect {name} --server" in sections[agent.title]


def test_every_method_of_the_client_is_on_its_page_and_no_other() -> None:
    cells = re.findall(r"^\| (`.+?) \|", CLIENT, re.MULTILINE)
    named = [name for cell in cells for name in re.findall(r"`(\w+)\(", cell)]
    offered = {name for name in dir(Client) if not name.startswith("_")} - {"close", "send"}
    assert sorted(named) == sorted(offered)
