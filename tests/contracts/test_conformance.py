"""The protocol's conformance suite, against a started service, at each revision that it knows.

It cannot send a token, so it talks to a proxy that adds one. What it may find to fail is in
`baselines/`, each with the reason; it fails for anything else, and for what fails no longer.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx2
import msgspec
import pytest
import yaml

from tests.contracts import node
from tests.processes import ServerProcess
from tests.service import TOOLS, call

pytestmark = pytest.mark.system

SUITE = node.MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
BASELINES = node.HERE / "baselines"
# What passed when the baselines were last renewed: checks, not scenarios.
PASSED = {"2025-06-18": 31, "2025-11-25": 44, "2026-07-28": 93}
# What passes where there are resources, and is in no baseline of that address.
OF_RESOURCES = {
    "2025-06-18": {"resources-list"},
    "2025-11-25": {"resources-list"},
    "2026-07-28": {
        "resources-list",
        "sep-2164-resource-not-found",
        "caching:sep-2549-resources-list-caching-hints",
        "caching:sep-2549-resources-templates-list-caching-hints",
    },
}
# Scenarios for every server that has tools and nothing else. A baseline may name checks of them
# for what such a server does not offer, but none of them as a whole.
FOR_EVERY_SERVER = {
    "server-initialize",
    "server-session-lifecycle",
    "server-stateless",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-error",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
    "http-header-validation",
    "caching",
}


class DemoServer(ServerProcess):
    """A server that also has the tools that the suite calls."""

    def program(self) -> list[str | Path]:
        """The module in place of the command."""
        return [sys.executable, "-m", "tests.contracts.demo"]


class Check(msgspec.Struct):
    """What the suite writes down of one check."""

    id: str
    status: str


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoServer]:
    """A started server; what the database holds makes no difference."""
    folder = tmp_path_factory.mktemp("conformance")
    database = f"sqlite:///{folder / 'factbook.db'}"
    root = node.HERE.parent.parent
    server = DemoServer(database, folder, PYTHONPATH=str(root))
    server.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def address(server: DemoServer) -> Iterator[str]:
    """An address at which the suite needs no token."""
    with node.proxied(server.url, server.token()) as found:
        yield found


def test_the_server_of_the_suite_asks_for_a_token(server: DemoServer) -> None:
    assert (
        httpx2.post(
            f"{server.url}{TOOLS}", json=call("test_simple_text", {}), timeout=60
        ).status_code
        == 401
    )


@pytest.mark.spec("endpoint.revisions-kept-while-spoken")
@pytest.mark.parametrize("revision", PASSED)
def test_the_suite_finds_no_failure_but_those_with_a_reason(
    address: str, tmp_path: Path, revision: str
) -> None:
    expect(f"{address}{TOOLS}", revision, BASELINES / f"{revision}.yml", tmp_path)


@pytest.mark.spec("endpoint.all-toolsets")
@pytest.mark.parametrize("revision", PASSED)
def test_at_the_address_of_all_tools_it_finds_less_for_the_resources(
    address: str, tmp_path: Path, revision: str
) -> None:
    named = yaml.safe_load((BASELINES / f"{revision}.yml").read_text("utf-8"))["server"]
    baseline = tmp_path / "baseline.yml"
    left = [entry for entry in named if entry not in OF_RESOURCES[revision]]
    assert len(left) == len(named) - len(OF_RESOURCES[revision])
    baseline.write_text(yaml.safe_dump({"server": left}), "utf-8")
    expect(f"{address}/mcp", revision, baseline, tmp_path / "found")


def expect(url: str, revision: str, baseline: Path, folder: Path) -> None:
    """Run the suite, which finds what the baseline has and nothing else."""
    said = node.run(
        SUITE, "server", "--url", url, "--suite", "all", "--spec-version", revision,
        "--output-dir", str(folder), "--expected-failures", str(baseline),
    )  # fmt: skip
    # It says nothing of an entry that names no check at all.
    expected = re.findall(r"^  ~ (\S+)$", said, re.MULTILINE)
    assert sorted(expected) == sorted(yaml.safe_load(baseline.read_text("utf-8"))["server"])
    files = list(folder.glob("*/checks.json"))
    checks = [c for file in files for c in msgspec.json.decode(file.read_bytes(), type=list[Check])]
    counted = Counter(check.status for check in checks)
    assert counted["SUCCESS"] >= PASSED[revision], counted


@pytest.mark.parametrize("revision", PASSED)
def test_a_baseline_has_a_reason_for_each_entry_and_spares_no_scenario_for_every_server(
    revision: str,
) -> None:
    text = (BASELINES / f"{revision}.yml").read_text("utf-8")
    entries = [line for line in text.splitlines() if line.lstrip().startswith("-")]
    for line in entries:
        assert " # " in line, line
    named = yaml.safe_load(text)["server"]
    assert len(named) == len(entries) == len(set(named))
    assert not FOR_EVERY_SERVER & set(named)
