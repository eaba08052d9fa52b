"""`make demo`: what it prints works, and interrupting it ends it cleanly."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.service import TOOLS, call

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "examples" / "demo.py"
Demo = subprocess.Popen[str]


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
        if line.startswith("Serving until"):
            break
    return "".join(lines)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_asks_shows_serves_and_stops(demo: Demo, folder: Path, number: int) -> None:
    text = printed(demo)
    assert "Question: how complete is component:default/receipts" in text
    assert '"hasGroupOwner": false' in text
    url = re.search(r"^URL: +(\S+)$", text, re.MULTILINE)
    token = re.search(r"^Token: (fbk_\w+)$", text, re.MULTILINE)
    assert url, text
    assert token, text
    answer = httpx2.post(
        url[1] + TOOLS,
        headers={"authorization": f"Bearer {token[1]}"},
        json=call("get-entity-compliance", {"name": "checkout"}),
    )
    owned = answer.json()["result"]["structuredContent"]["ownership"]
    assert owned == {"hasOwner": True, "hasGroupOwner": True, "hasRelationships": True}
    assert list(folder.iterdir())
    curl = re.search(r"  curl -sS .*?'\n\n", text, re.DOTALL)
    assert curl, text
    assert subprocess.run(["bash", "-n", "-c", curl[0]], check=False).returncode == 0

    demo.send_signal(number)

    rest, _ = demo.communicate(timeout=100)
    assert demo.returncode == 0
    assert rest.strip() == "Stopped. Nothing is left behind."
    assert not list(folder.iterdir())
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{url[1]}/healthz")


def test_a_step_that_fails_is_explained(alone: None, folder: Path) -> None:
    # The demo pushes what lies beside it.
    examples = folder / "examples"
    examples.mkdir()
    shutil.copy(SCRIPT, examples)
    (examples / "bad.yaml").write_text("apiVersion: v1\nkind: Resource\nmetadata: {}\n")
    done = subprocess.run(
        [sys.executable, examples / SCRIPT.name],
        env=os.environ | {"TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "The demo failed. `factbook push` said:" in done.stderr
    assert "metadata.name is required" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(folder.iterdir()) == [examples]
