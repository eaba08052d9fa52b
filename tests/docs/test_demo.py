"""`make demo`: its output works, it shows faults, and interrupting it ends it cleanly."""

import asyncio
import fcntl
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
from urllib.parse import urlsplit

import httpx2
import pytest

from examples.shop import history
from factbook import clock
from tests.browser import screenshots
from tests.docs.blocks import json_differs
from tests.service import NOON, call
from tests.waiting import TAKEN_OVER, until
from tests.web.visiting import PASSWORD, Browser, words

pytestmark = pytest.mark.timeout(2_500)

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SCRIPT = EXAMPLES / "demo.py"
README = ROOT / "README.md"
Demo = subprocess.Popen[str]
# Only locked packages can be imported.
IMPORTED = """
import sys
from importlib.metadata import packages_distributions
found = packages_distributions()

class Absent:
    def find_spec(self, name, path=None, target=None):
        of = {each.lower().replace("_", "-") for each in found.get(name.partition(".")[0], ())}
        if of and not of & set(sys.argv[1:]):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import demo
print("httpx2" in sys.modules)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the demo puts its temporary folder."""
    return tmp_path


@pytest.fixture
def day() -> None:
    """Wait for the next day (UTC) if this one is about to end: then pages show one day more."""
    until(lambda: clock.now() % clock.DAY < clock.DAY - 5 * clock.MINUTE, TAKEN_OVER)


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


class Shown:
    """What the demo printed: its text, address, link and token."""

    def __init__(self, demo: Demo) -> None:
        self.text = printed(demo)
        *_, link, _, server, token = self.text.splitlines()
        self.url = server.removeprefix("  export FACTBOOK_SERVER=")
        self.link = link.removeprefix("  Link:  ")
        self.headers = {"authorization": f"Bearer {token.removeprefix('  export FACTBOOK_TOKEN=')}"}

    def get(self, path: str) -> Any:
        path = f"{self.url}/api/tech-insights/v1/{path}"
        answer = httpx2.get(path, headers=self.headers, timeout=60)
        assert answer.is_success, answer.text
        return answer.json()


@pytest.mark.slow
def test_the_demo_answers_serves_looks_like_the_pictures_at_any_time_and_stops(
    day: None, demo: Demo, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shown = Shown(demo)
    printed = re.search(
        r"Question: which Logistics services .*\nAnswer:\n({.*?\n})\n", shown.text, re.DOTALL
    )
    assert printed, shown.text
    [in_readme] = re.findall(r"```json\n(.*?)```", README.read_text(), re.DOTALL)
    assert json_differs(in_readme, printed[1]) is None
    assert shown.link.startswith(f"{shown.url}/welcome/")
    assert shown.text.count("/welcome/") == 1
    assert httpx2.get(shown.link, timeout=60).status_code == 200
    message = call("get-entity-compliance", {"name": "checkout"})
    answer = httpx2.post(f"{shown.url}/mcp", headers=shown.headers, json=message, timeout=60)
    owned = answer.json()["result"]["structuredContent"]["ownership"]
    assert owned == {
        "hasOwner": True,
        "hasGroupOwner": True,
        "hasRelationships": True,
        "ownerExists": True,
    }
    assert list(folder.iterdir())
    curl = re.search(r"  curl -sS .*?'\n\n", shown.text, re.DOTALL)
    assert curl, shown.text
    assert subprocess.run(["bash", "-n", "-c", curl[0]], check=False).returncode == 0

    asyncio.run(compare_with_pictures(shown, tmp_path_factory.mktemp("pictures")))

    demo.send_signal(signal.SIGINT)
    rest, _ = demo.communicate(timeout=100)
    assert demo.returncode == 0
    assert rest.strip() == "Stopped. Nothing is left behind."
    assert not list(folder.iterdir())
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{shown.url}/healthz", timeout=60)


# What depends on when somebody looks: times, and the labels of axes.
_TIMES = re.compile(
    r"\b(in )?\d+ (second|minute|hour|day)s?( ago)?|\bnow\b|"
    r"\b\d{1,2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\b( \d{4})?|"
    r"\d{4}-\d\d-\d\d\S*|\d\d:\d\d"
)
_COMPARED = ("overview", "entity", "scorecard", "check", "scorecards", "team-matrix", "exemptions")


async def figures(http: httpx2.AsyncClient, link: str) -> dict[str, str]:
    """The words of the compared pages for the person whom the link is for, without times."""
    browser = Browser(http)
    path = urlsplit(link).path
    await browser.open(path)
    await browser.done(path, display_name="Ada Moreau", password=PASSWORD, again=PASSWORD)
    found = {}
    for name in _COMPARED:
        html = await browser.text(screenshots.PAGES[name])
        main = html[html.index("<main") :]
        found[name] = _TIMES.sub("", words(re.sub(r"<text\b.*?</text>", "", main)))
    return found


async def figures_at(now: int, folder: Path) -> dict[str, str]:
    """The words of the pages of the shop as it is at a time."""
    async with (
        screenshots.served(folder, now=now) as (shop, url),
        httpx2.AsyncClient(base_url=url, timeout=60) as http,
    ):
        return await figures(http, await shop.invite(history.VIEWER, "administrator", url))


async def compare_with_pictures(shown: Shown, pictures: Path) -> None:
    """Fail unless the pages, and the facts and scorecards behind them, are as in the pictures.

    So they are a minute after midnight in another month, when a day has hardly begun.
    """
    async with httpx2.AsyncClient(base_url=shown.url, timeout=60) as http:
        in_demo = await figures(http, shown.link)
    in_pictures = await figures_at(NOON, pictures)
    for name in _COMPARED:
        assert in_demo[name].split() == in_pictures[name].split(), name
    early = NOON + 10 * clock.DAY - clock.DAY // 2 + clock.MINUTE
    (pictures / "early").mkdir()
    assert await figures_at(early, pictures / "early") == in_pictures

    assert "Mine: team-payments" in in_demo["overview"]
    assert "Builds custom down upstream-error: 127.0.0.1: no connection" in in_demo["overview"]
    assert "22 of 22 entities, \N{MINUS SIGN}1 point " in in_demo["overview"]
    assert "without an owner 1 0%" in in_demo["scorecard"]
    assert "Critical findings in ledger: 2." in in_demo["entity"]
    assert "Tests cover 65." in in_demo["check"]
    assert "The fix needs a migration that runs on Saturday." in in_demo["exemptions"]
    [stock] = shown.get("facts/on-call?entity=component:stock")["entities"]
    assert stock["reasons"] == {"": "expired: upstream-error: the answer is not JSON"}
    for scorecard in ("readiness", "security", "delivery"):
        results = f"scorecard-results/{scorecard}"
        points = shown.get(f"{results}/trend")["points"]
        assert len(points) >= 90
        assert all(points[-1]["levels"][level] for level in ("bronze", "gold"))
        assert points[-1]["noLevel"]
        groups = shown.get(f"{results}/rollup")["groups"]
        scores = {group["name"]: group["score"] for group in groups if group["total"] > 1}
        assert min(scores, key=scores.__getitem__) == "group:default/team-logistics"
        assert scores["group:default/team-identity"] == max(scores.values())


@pytest.mark.slow
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
    assert "The demo failed. The service refused what was sent: " in done.stderr
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_demo_needs_no_other_package_than_the_service() -> None:
    locked = (ROOT / "requirements" / "runtime.lock").read_text()
    known = ["factbook", *re.findall(r"^(\S+)==", locked, re.MULTILINE)]
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, *known],
        cwd=EXAMPLES,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "True\n", done.stderr
