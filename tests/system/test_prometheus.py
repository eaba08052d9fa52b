"""Facts of a real Prometheus and a real Alertmanager, from a history of known incidents."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.processes import ServerProcess, serving
from tests.service import PUSH, TOOLS, call, component
from tests.system.prometheus import PASSWORD, Line, alertmanager, backfill, prometheus

pytestmark = pytest.mark.system

HOUR = 3_600
DAY = 24 * HOUR
# What is said in a query has to be one service's name and nothing else.
HOSTILE = 'x"} or up{y!~"|.*\\'

RULES: list[dict[str, Any]] = [
    {
        "alert": "Down",
        "expr": 'up{service="checkout"} == 0',
        "labels": {"service": "checkout", "severity": "critical", "team": "shop"},
        "annotations": {"summary": "It is down."},
    },
    {
        "alert": "Slow",
        "expr": 'up{service="checkout"} == 2',
        "labels": {"service": "checkout", "severity": "warning"},
    },
    {
        "alert": "Down",
        "expr": 'up{service="search"} == 0',
        "labels": {"service": "search", "severity": "critical"},
    },
    {
        "record": "slo:sli_error:ratio_rate30d",
        "expr": "vector(0)",
        "labels": {"sloth_service": "checkout", "sloth_slo": "availability", "sloth_id": "1"},
    },
    {
        "record": "requests:increase4w",
        "expr": "vector(0)",
        "labels": {"service": "checkout", "slo": "latency"},
    },
]
ROUTES = {
    "route": {
        "receiver": "everybody",
        "routes": [
            {"receiver": "pager", "matchers": ['service=~"check.*"', 'severity="critical"']}
        ],
    },
    "receivers": [
        {"name": "everybody"},
        {"name": "pager", "webhook_configs": [{"url": "http://127.0.0.1:9/"}]},
    ],
}
CHECKOUT: dict[str, dict[str, Any]] = {
    "incidentMetrics": {
        "totalIncidents": 4,
        "monthlyIncidents": 2,
        "quarterlyIncidents": 3,
        # See `history`: (1,140 + 540 + 2,040) / 3.
        "meanTimeToResolve": 1240,
        # Of 2 targets with 720 samples each one is down in 36: 1,404 of 1,440.
        "upTimePercentage": 97.5,
    },
    "serviceInfo": {"hasEscalationPolicy": True, "hasTeamsAssigned": True, "hasDescription": True},
}
CHECKOUT_COUNTS = CHECKOUT["incidentMetrics"]
NEVER = {
    "incidentMetrics.meanTimeToFirstAck": "not-applicable",
    "serviceInfo.alertCreationType": "not-applicable",
}


def history(now: int) -> Iterator[Line]:
    """The samples of 400 days; `now` is a whole minute.

    An alert's samples are taken half a minute after each full one. Nothing says that the series
    has ended, so it goes on for the 5 minutes for which Prometheus looks back: n samples are seen
    as firing from 30 s after the first one to 330 s after the last: for 60 · n + 240 seconds.
    """
    for target, service, down in (
        ("a", "checkout", range(0)),
        ("b", "checkout", range(10, 46)),
        ("c", "search", range(0)),
    ):
        hours = range(400 * 24, -1, -1)
        samples = [(now - HOUR // 2 - hour * HOUR, float(hour not in down)) for hour in hours]
        yield Line("up", {"instance": target, "service": service}, samples)
    for days, minutes, alert, labels in (
        # Two instances at once: one incident, of 15 samples, 1,140 s.
        (10, range(10), "Down", {"service": "checkout", "instance": "a"}),
        (10, range(5, 15), "Down", {"service": "checkout", "instance": "b"}),
        (20, range(5), "Slow", {"service": "checkout", "instance": "a", "severity": "warning"}),
        (60, range(30), "Down", {"service": "checkout", "instance": "c"}),
        (200, range(3), "Down", {"service": "checkout", "instance": "d"}),
        (380, range(3), "Down", {"service": "checkout", "instance": "e"}),
        # It was pending and never fired.
        (5, range(9), "Down", {"service": "checkout", "instance": "f", "alertstate": "pending"}),
        (3, range(7), "Odd", {"service": HOSTILE}),
    ):
        samples = [(now - days * DAY + minute * 60 + 30, 1.0) for minute in minutes]
        given = {"alertname": alert, "alertstate": "firing", "severity": "critical"}
        yield Line("ALERTS", given | labels, samples)


def mapped(name: str, service: str) -> dict[str, Any]:
    """A component that points to a service."""
    entity = component(name)
    entity["metadata"]["annotations"] = {"prometheus.io/service": service}
    return entity


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The blocks of the history; to be copied before a Prometheus writes to them."""
    folder = tmp_path_factory.mktemp("history") / "storage"
    backfill(history(int(time.time()) // 60 * 60), folder)
    return folder


Ask = Callable[[str, str], tuple[dict[str, Any], dict[str, str]]]


@contextmanager
def serving_facts(
    database_url: str, folder: Path, storage: Path, *, retention: str
) -> Iterator[ServerProcess]:
    """A server, and a Prometheus with this retention and an Alertmanager that it asks."""
    shutil.copytree(storage, folder / "storage")
    rooms = (folder / "storage", folder / "prometheus")
    with (
        prometheus(*rooms, RULES, retention=retention) as url,
        alertmanager(folder / "alertmanager", ROUTES) as other,
    ):
        table = {
            "BASE_URL": url,
            "USERNAME": "reader",
            "PASSWORD": PASSWORD,
            "ALERTMANAGER_URL": other,
        }
        variables = {
            f"FACTBOOK_INTEGRATIONS__PROMETHEUS__DEFAULT__{name}": value
            for name, value in table.items()
        }
        variables["FACTBOOK_OUTGOING_NETWORKS"] = "127.0.0.0/8"
        with serving(database_url, folder, **variables) as server:
            yield server


@contextmanager
def collected(server: ServerProcess, *unknown: str) -> Iterator[Ask]:
    """Push services, collect, and give what asks a tool about one: the result, the reasons."""
    names = {"checkout": "checkout", "search": "search", "odd": HOSTILE, "gone": "check"}
    names |= {service: service for service in unknown}
    items = [mapped(name, service) for name, service in names.items()]
    with server.client(server.token()) as http:
        assert http.put(f"{PUSH}/sets/all", json={"items": items}).status_code == 200
        output = server.command("collect", "prometheus", "--json")
        assert output.startswith("{"), output
        run = json.loads(output)
        assert (run["covered"], run["failed"]) == (3, 1 + len(unknown)), run

        def ask(tool: str, name: str) -> tuple[dict[str, Any], dict[str, str]]:
            arguments = {"name": name} | (
                {"dataSourceId": "prometheus"} if tool == "get-entity-facts" else {}
            )
            result = http.post(TOOLS, json=call(tool, arguments)).json()["result"]
            if result["isError"]:
                return {}, {"": result["content"][0]["text"]}
            found: dict[str, Any] = result["structuredContent"]
            found.pop("collectedAt", None)
            return found, found.pop("unknownReasons", {})

        yield ask


def test_the_figures_are_those_of_the_history(
    database_url: str, tmp_path: Path, storage: Path
) -> None:
    with (
        serving_facts(database_url, tmp_path, storage, retention="500d") as server,
        collected(server) as ask,
    ):
        check_figures(ask)


def check_figures(ask: Ask) -> None:
    assert ask("get-incident-metrics", "checkout") == (CHECKOUT, NEVER)
    assert ask("get-observability-metrics", "checkout") == ({"monitorCount": 2, "sloCount": 2}, {})
    search, reasons = ask("get-incident-metrics", "search")
    assert search == {
        "incidentMetrics": {
            "totalIncidents": 0,
            "monthlyIncidents": 0,
            "quarterlyIncidents": 0,
            "upTimePercentage": 100,
        },
        "serviceInfo": {
            "hasEscalationPolicy": False,
            "hasTeamsAssigned": False,
            "hasDescription": False,
        },
    }
    assert reasons == NEVER | {"incidentMetrics.meanTimeToResolve": "not-applicable"}
    odd, _ = ask("get-incident-metrics", "odd")
    assert odd["incidentMetrics"] == {
        "totalIncidents": 1,
        "monthlyIncidents": 1,
        "quarterlyIncidents": 1,
        "meanTimeToResolve": 7 * 60 + 240,
    }
    assert ask("get-observability-metrics", "odd")[0] == {"monitorCount": 0, "sloCount": 0}
    gone, reasons = ask("get-incident-metrics", "gone")
    named = {"prometheus": "annotation prometheus.io/service is check"}
    assert (gone, set(reasons.values())) == ({"unknownDetails": named}, {"not-found"})
    assert "not-found" in ask("get-observability-metrics", "gone")[1][""]


def test_what_is_kept_for_a_hundred_days_says_nothing_of_a_year(
    database_url: str, tmp_path: Path, storage: Path
) -> None:
    # There are too many services for a query to name each.
    with (
        serving_facts(database_url, tmp_path, storage, retention="100d") as server,
        collected(server, *(f"gone-{number}" for number in range(200))) as ask,
    ):
        found, reasons = ask("get-incident-metrics", "checkout")
        assert found == {"serviceInfo": CHECKOUT["serviceInfo"]}
        assert reasons["incidentMetrics"] == "not-applicable"
        facts, _ = ask("get-entity-facts", "checkout")
        prefix = "incident.incidentMetrics."
        counts = {name: facts["facts"].get(f"{prefix}{name}") for name in CHECKOUT_COUNTS}
        assert counts == CHECKOUT_COUNTS | {"totalIncidents": None}
