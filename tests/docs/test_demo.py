"""`make demo`: what it prints works, and interrupting it ends it cleanly."""

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.browser import recording, showcase
from tests.browser.vendors import Vendors
from tests.service import TOOLS, call
from tests.waiting import until

pytestmark = pytest.mark.timeout(1_500)

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SCRIPT = EXAMPLES / "demo.py"
Demo = subprocess.Popen[str]
# Top-level modules that are part of the demo or of Python itself have no distribution.
IMPORTED = """
import sys
from importlib.metadata import packages_distributions
before = set(sys.modules)
import demo
found = packages_distributions()
for name in {name.partition(".")[0] for name in set(sys.modules) - before}:
    print(*found.get(name, ()), sep="\\n")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the demo puts its temporary folder."""
    return tmp_path


@pytest.fixture
def alone() -> Iterator[None]:
    """One demo at a time: each looks first whether port 8000 is free."""
    with SCRIPT.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture
def demo(alone: None, folder: Path) -> Iterator[Demo]:
    # A setting of another service must not lead the demo there.
    environment = os.environ | {"TMPDIR": str(folder), "FACTBOOK_DATABASE_URL": "nonsense"}
    with subprocess.Popen(
        [sys.executable, SCRIPT],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        yield process
        if process.poll() is None:
            process.terminate()


def printed(demo: Demo) -> str:
    """What the demo prints until it serves."""
    assert demo.stdout is not None
    lines = []
    for line in demo.stdout:
        lines.append(line)
        if line.startswith("  export FACTBOOK_TOKEN="):
            break
    return "".join(lines)


@pytest.mark.slow
def test_the_demo_asks_shows_serves_and_stops(demo: Demo, folder: Path) -> None:
    text = printed(demo)
    assert "Question: how does the team of component:default/checkout work" in text
    assert '"mergedLastMonth": 45' in text
    *_, link, _, server, token = text.splitlines()
    url = server.removeprefix("  export FACTBOOK_SERVER=")
    assert link.startswith(f"  Link:  {url}/welcome/")
    assert text.count("/welcome/") == 1
    assert httpx2.get(link.split()[1], timeout=60).status_code == 200
    headers = {"authorization": f"Bearer {token.removeprefix('  export FACTBOOK_TOKEN=')}"}
    answer = httpx2.post(
        url + TOOLS,
        headers=headers,
        json=call("get-entity-compliance", {"name": "checkout"}),
        timeout=60,
    )
    owned = answer.json()["result"]["structuredContent"]["ownership"]
    assert owned == {
        "hasOwner": True,
        "hasGroupOwner": True,
        "hasRelationships": True,
        "ownerExists": True,
    }
    history = f"{url}/api/tech-insights/v1/facts?entity=component:checkout"
    known = httpx2.get(f"{history}&dataSourceIds=coverage", headers=headers, timeout=60).json()[
        "items"
    ]
    assert len(known) == showcase.DAYS + 1
    starter = httpx2.get(
        f"{url}/api/tech-insights/v1/scorecards/starter", headers=headers, timeout=60
    )
    assert starter.json()["draft"] is False
    assert list(folder.iterdir())
    curl = re.search(r"  curl -sS .*?'\n\n", text, re.DOTALL)
    assert curl, text
    assert subprocess.run(["bash", "-n", "-c", curl[0]], check=False).returncode == 0

    demo.send_signal(signal.SIGINT)

    rest, _ = demo.communicate(timeout=100)
    assert demo.returncode == 0
    assert rest.strip() == "Stopped. Nothing is left behind."
    assert not list(folder.iterdir())
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{url}/healthz", timeout=60)


def test_a_demo_that_is_told_to_stop_while_it_starts_leaves_nothing_behind(
    demo: Demo, folder: Path
) -> None:
    until(lambda: list(folder.glob("*/factbook.db")), 300)
    demo.send_signal(signal.SIGTERM)
    said, _ = demo.communicate(timeout=100)
    assert demo.returncode == 0, said
    assert said.splitlines()[-1] == "Stopped. Nothing is left behind."
    assert not list(folder.iterdir())


@pytest.mark.slow
def test_a_step_that_fails_is_explained(alone: None, folder: Path) -> None:
    # The demo pushes what lies beside it.
    copied = folder / "examples"
    shutil.copytree(EXAMPLES, copied, ignore=shutil.ignore_patterns("__pycache__"))
    broken = copied / "shop" / "entities" / "logistics.yaml"
    broken.write_text("apiVersion: v1\nkind: Resource\nmetadata: {}\n")
    done = started(folder, copied / SCRIPT.name)
    assert done.returncode == 1
    assert "The demo failed. The service refused what was pushed: " in done.stderr
    assert "metadata.name is required" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(folder.iterdir()) == [copied]


def started(folder: Path, script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A demo that ends by itself."""
    return subprocess.run(
        [sys.executable, script, *arguments],
        env=os.environ | {"TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_chosen_port_that_is_in_use_ends_the_demo_with_advice(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = started(folder, SCRIPT, "--port", str(port))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        f"\nThe demo failed. Port {port} cannot be used: Address already in use. "
        "Choose another: make demo PORT=8080\n"
    )


@pytest.mark.parametrize("text", ["0", "65536", "http"])
def test_what_is_no_port_is_refused(folder: Path, text: str) -> None:
    done = started(folder, SCRIPT, "--port", text)
    assert done.returncode == 2
    assert f"{text} is no port: 1 to 65535." in done.stderr


def test_the_demo_hands_on_its_port_and_installs_runtime_packages_alone() -> None:
    done = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", "--always-make", "demo", "PORT=8123"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    locks = re.findall(r"requirements/(\w+)\.lock", done.stdout)
    assert list(dict.fromkeys(locks)) == ["installer", "runtime", "build"]
    assert done.stdout.splitlines()[-1] == ".venv/bin/python examples/demo.py --port 8123"


def test_the_demo_needs_no_other_package_than_the_service() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED],
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        check=True,
    )
    locked = (ROOT / "requirements" / "runtime.lock").read_text()
    known = {"factbook", *re.findall(r"^(\S+)==", locked, re.MULTILINE)}
    used = {name.lower().replace("_", "-") for name in done.stdout.split()}
    assert "httpx2" in used
    assert used <= known


@pytest.mark.slow
@pytest.mark.parametrize("day", [0, showcase.DAYS])
async def test_the_demos_facts_are_what_the_integrations_bring(day: int) -> None:
    recorded: dict[tuple[str, str], dict[str, Any]] = {}
    for source, entity, at, facts in json.loads(recording.FILE.read_text()):
        if at <= day:
            recorded[source, entity] = recorded.get((source, entity), {}) | facts
    brought = await recording.on_day(Vendors(), day)
    found = {(source, ref): facts for source in brought for ref, facts in brought[source].items()}
    known = {key: facts for key, facts in found.items() if facts}
    assert {source for source, _ in recorded} == set(brought)
    assert known == {key: recorded[key] for key in known}
