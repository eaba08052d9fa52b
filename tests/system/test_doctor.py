"""`factbook doctor` as a process of its own, beside a server."""

import json
from pathlib import Path

import pytest

from tests.processes import serving
from tests.service import PUSH, component

pytestmark = pytest.mark.system


def test_the_doctor_finds_a_server_well_and_then_not(database_url: str, tmp_path: Path) -> None:
    with serving(database_url, tmp_path) as server:
        server.environment["FACTBOOK_PUBLIC_URL"] = server.url
        with server.client(server.token()) as http:
            body = {"items": [component("web")]}
            assert http.put(f"{PUSH}/sets/one", json=body).status_code == 200
            hook = {"url": "https://receiver.example/", "types": []}
            assert http.post("/api/events/webhooks", json=hook).status_code == 201
        told = json.loads(server.command("doctor", "--json"))
        assert told["ok"] is True
        states = {check["topic"]: check["state"] for check in told["checks"]}
        for topic in ("configuration", "key", "database", "migrations", "address", "worker"):
            assert states[topic] == "ok", told
        server.environment["FACTBOOK_TOKEN_KEY"] = "another key of tests, long enough"
        said = server.command("doctor", expect=1)
        assert "problem  key: Sealed under another key: webhook" in said
    said = server.command("doctor", "--quick", expect=1)
    assert "warning  address: Nothing answers at" in said
