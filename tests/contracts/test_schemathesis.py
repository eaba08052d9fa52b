"""Schemathesis tries the REST interfaces, as their OpenAPI documents describe them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from factbook.api.routes import DOCUMENTS, list_routes
from factbook.settings import Settings
from tests.api.defining import SOURCES, of_entities
from tests.api.defining import pushed as pushed_source
from tests.processes import ServerProcess, serving
from tests.sample_catalog import entities
from tests.service import PUSH, component

SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
HERE = Path(__file__).parent
SOAK = bool(os.environ.get("FACTBOOK_SOAK"))
EXAMPLES = 1_000 if SOAK else 20
# A run for a change tries the same requests each time; `make soak` tries new ones.
SEED = [] if SOAK else ["--seed", "16"]
PHASES = {"examples", "coverage", "fuzzing", "stateful"}
# It asks as quickly as it can, and without or with wrong tokens too: higher, not off.
LIMITS = {
    "FACTBOOK_TOKEN_RATE": "10000",
    "FACTBOOK_TOKEN_BURST": "100000",
    "FACTBOOK_FAILED_LOGINS": "100000",
}

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(7_200 if SOAK else 3_000),
    pytest.mark.parametrize("database_url", ["sqlite"], indirect=True),
]


@pytest.mark.parametrize("prefix", [prefix for prefix, _, _ in DOCUMENTS])
def test_schemathesis_finds_nothing(prefix: str, database_url: str, tmp_path: Path) -> None:
    routes = [
        route for route in list_routes(Settings()) if f"{route.path}/".startswith(f"{prefix}/")
    ]
    described = sum(route.described for route in routes)
    # `payments` is what the examples of the documents name.
    with serving(database_url, tmp_path, **LIMITS) as server:
        report = run(
            server, f"{prefix}/openapi.json", tmp_path, [component("payments"), *entities()]
        )
    assert report["failures"] == []
    assert report["errors"] == []
    assert {name for name, phase in report["phases"].items() if phase["status"] == "success"} == (
        PHASES
    )
    assert report["operations"]["tested"] == report["operations"]["total"] == described
    # An operation without parameters is called in one way, any other in EXAMPLES and more.
    assert report["test_cases"]["generated"] > EXAMPLES // 2 * described
    assert report["complete"] is True


def run(
    server: ServerProcess, address: str, folder: Path, entities: list[dict[str, Any]]
) -> dict[str, Any]:
    """The report of a run in all phases with all checks."""
    token = server.token()
    with server.client(token) as http:
        pushed = http.put(f"{PUSH}/sets/payments", json={"items": entities})
        assert pushed.status_code == 200, pushed.text
        for source in (pushed_source(), of_entities()):
            made = http.put(f"{SOURCES}/{source['id']}", json=source)
            assert made.status_code == 200, made.text
        [own] = http.get("/api/access/v1/tokens").json()["tokens"]
    known = {
        "SCHEMATHESIS_HOOKS": str(HERE / "schemathesis_hooks.py"),
        "KNOWN_UIDS": " ".join(item["id"] for item in pushed.json()["items"]),
        "OWN_TOKEN": f"{own['id']} {own['name']}",
    }
    report = folder / "report.json"
    done = subprocess.run(
        [
            SCHEMATHESIS, "--config-file", HERE / "schemathesis.toml",
            "run", server.url + address,
            "--header", f"Authorization: Bearer {token}",
            "--max-examples", str(EXAMPLES),
            *SEED,
            "--report", "json",
            "--report-json-path", report,
            "--no-color",
        ],
        env=os.environ | known,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    return found
