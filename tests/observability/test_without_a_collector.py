"""Traces that are off, cannot be sent, or are not asked for in a way that works."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from factbook.api import routes
from factbook.errors import ConfigurationError
from factbook.observability import traces
from factbook.settings import Settings
from tests.processes import clean_environment, free_port, serving
from tests.service import PUSH, Service, component
from tests.waiting import until

ITEMS = {"items": [component("web")]}
# One line for each set of variables: what is loaded by then, or the refusal.
PROGRAM = """
import json, os, sys
from factbook import app
from factbook.errors import ConfigurationError
names = "opentelemetry", "google.protobuf", "requests"
for variables in json.loads(sys.argv[1]):
    os.environ |= variables
    missing = "opentelemetry.sdk.trace" if variables.pop("MISSING", None) else None
    if missing:
        sys.modules[missing] = None
    try:
        app.create()
        print([name for name in sys.modules if name.startswith(names)])
    except ConfigurationError as error:
        print(error)
        del sys.modules[missing]
    for name in variables:
        del os.environ[name]
"""


def loaded(folder: Path, *variables: dict[str, str]) -> list[str]:
    """What one process has loaded after it made the application with each of these."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(variables)],
        env=clean_environment(),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(params=["gone", "silent"])
def endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a collector that is not there, or takes connections and says nothing."""
    if request.param == "gone":
        yield f"http://127.0.0.1:{free_port()}"
        return
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.slow
@pytest.mark.spec("traces.disturb-nobody")
def test_a_collector_that_does_not_answer_disturbs_nobody(endpoint: str, tmp_path: Path) -> None:
    variables = {
        "FACTBOOK_TRACES": "true",
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
        "OTEL_BSP_SCHEDULE_DELAY": "20",
        "OTEL_BSP_MAX_QUEUE_SIZE": "20",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "5",
    }
    with serving(f"sqlite:///{tmp_path}/facts.db", tmp_path, **variables) as server:
        with server.client(server.token()) as http:
            for _ in range(30):
                assert http.put(f"{PUSH}/sets/one", json=ITEMS).status_code == 200

            def has_told() -> bool:
                assert http.get("/api/catalog/entities").status_code == 200
                return "traces.lost" in server.log.read_text()

            until(has_told)
        assert server.stop() in (0, -signal.SIGTERM)
        log = server.log.read_text()
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert [line["event"] for line in lines].count("traces.lost") == 1
    assert "opentelemetry" not in log
    assert "Traceback" not in log


@pytest.mark.slow
@pytest.mark.spec("traces.nothing-when-off")
def test_opentelemetry_is_loaded_for_traces_alone_and_named_where_it_is_missing(
    tmp_path: Path,
) -> None:
    on = {"FACTBOOK_TRACES": "true"}
    *off, missing, with_traces = loaded(
        tmp_path,
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"},
        on | {"OTEL_SDK_DISABLED": "true"},
        on | {"OTEL_TRACES_EXPORTER": "none"},
        on | {"MISSING": "true"},
        on,
    )
    assert off == ["[]"] * 4
    assert "pip install 'factbook[traces]'" in missing
    assert "'opentelemetry.sdk.trace'" in with_traces


async def test_without_traces_nothing_stands_between(service: Service) -> None:
    tracing = traces.start_tracing(service.state.settings, {})
    endpoints, tools = routes.build_endpoints(service.state), service.state.tools
    assert tracing.endpoints(endpoints) is endpoints
    assert tracing.tools(tools) is tools
    assert tracing.database(service.state.database) is service.state.database


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "Traces are sent as http/protobuf"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "Traces are sent as http/protobuf"),
        ("OTEL_TRACES_EXPORTER", "zipkin", "Traces are sent over OTLP"),
    ],
)
def test_what_it_cannot_do_is_refused_at_the_start(variable: str, value: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told):
        traces.start_tracing(Settings(traces=True), {variable: value})
