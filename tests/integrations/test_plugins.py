"""A source in Python outside the package: the example is installed, configured, run and asked."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from factbook import integrations
from factbook.errors import ConfigurationError
from tests.fakes.fake import Fake, path_of
from tests.fakes.faults import as_json
from tests.fakes.serving import served
from tests.processes import UV, ServerProcess, serving
from tests.service import PUSH, component

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "source-plugin"


class FakeEndOfLife(Fake):
    """The public service, for one product."""

    releases: Mapping[str, Any] = {
        "3.8": {"eol": "2024-10-07", "latest": "3.8.20"},
        "3.11": {"eol": "2027-10-31", "latest": "3.11.14"},
        "0": {"eol": False, "latest": None},
    }

    def kind(self, request: Request) -> str:
        """Everything is one kind."""
        return "release"

    async def answer(self, request: Request) -> Response:
        """A release, or that there is none."""
        found = self.releases.get(path_of(request).removeprefix("/api/python/")[: -len(".json")])
        return as_json(found) if found else as_json({"message": "Product not found"}, 404)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the example is installed, as a package of its own."""
    folder = tmp_path_factory.mktemp("plugin")
    # Of a copy, because building leaves files behind.
    copy = shutil.copytree(EXAMPLE, folder / "source")
    subprocess.run(
        [
            *(UV, "pip", "install", "--quiet", "--python", sys.executable, "--no-deps"),
            *("--no-build-isolation", "--target", folder / "site", copy),
        ],
        check=True,
        timeout=100,
    )
    return folder / "site"


@pytest.fixture
def server(installed: Path, tmp_path: Path) -> Iterator[tuple[ServerProcess, FakeEndOfLife]]:
    """A server with the example, and the service that it asks."""
    fake = FakeEndOfLife()
    with (
        served(fake) as url,
        serving(
            f"sqlite:///{tmp_path / 'factbook.db'}",
            tmp_path,
            PYTHONPATH=str(installed),
            FACTBOOK_OUTGOING_NETWORKS="127.0.0.0/8",
            # The command is what asks here.
            FACTBOOK_COLLECT="false",
            FACTBOOK_INTEGRATIONS__ENDOFLIFE__DEFAULT__BASE_URL=url,
        ) as process,
    ):
        token = process.command(
            "token", "create", "test", "--preset", "pipeline", "--preset", "author"
        )  # knows the package
        process.environment["FACTBOOK_TOKEN"] = token.strip()
        yield process, fake


@pytest.mark.slow
def test_the_example_is_collected_and_asked_as_any_source(
    server: tuple[ServerProcess, FakeEndOfLife],
) -> None:
    process, fake = server
    products = {
        "new": "python@3.11",
        "same": "python@3.11",
        "old": "python@3.8",
        "endless": "python@0",
        "gone": "python@1",
        "hostile": "../../python@3.11",
    }
    items = []
    for name, product in products.items():
        items.append(component(name))
        items[-1]["metadata"]["annotations"] = {"endoflife.date/product": product}
    with process.client(process.environment["FACTBOOK_TOKEN"]) as client:
        assert client.put(f"{PUSH}/sets/all", json={"items": items}).status_code == 200
    process.command("collect", "endoflife")
    shown = {name: facts_of(process, name) for name in products}
    assert shown == {
        "new": {"supported": True, "end": "2027-10-31", "latest": "3.11.14"},
        "same": {"supported": True, "end": "2027-10-31", "latest": "3.11.14"},
        "old": {"supported": False, "end": "2024-10-07", "latest": "3.8.20"},
        "endless": {"supported": True},
        "gone": {},
        "hostile": {},
    }
    assert fake.requests == {"release": 4}
    assert "endoflife" in process.command("sources")


def facts_of(process: ServerProcess, name: str) -> dict[str, Any]:
    """The facts about a component, by the tool."""
    arguments = ("dataSourceId=endoflife", f"name={name}", "--json")
    found = json.loads(process.invoke("call", "get-entity-facts", *arguments))
    facts: dict[str, Any] = found["facts"]
    return facts


def test_a_vendor_that_is_not_there_is_told_with_those_that_are() -> None:
    with pytest.raises(ConfigurationError, match=r"no integration 'nothing'.*github"):
        integrations.find_vendor("nothing")


@pytest.mark.parametrize(
    ("module", "told"),
    [
        ("raise RuntimeError('broken')", "cannot be loaded: RuntimeError: broken"),
        ("INTEGRATION = 7", "is not a Vendor of that id"),
        ("", "cannot be loaded: AttributeError"),
    ],
)
def test_a_package_that_is_broken_is_told_at_the_start(
    module: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"factbook_broken_{abs(hash(module))}"
    (tmp_path / f"{name}.py").write_text(module)
    info = tmp_path / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[factbook.integrations]\nbroken = {name}:INTEGRATION\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigurationError, match=told):
        integrations.find_vendor("broken")
