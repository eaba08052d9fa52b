"""The alerts of `deploy/prometheus/alerts.yml`, by Prometheus's own tool."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.system.alerts import CASES, Case
from tests.system.prometheus import needed

pytestmark = pytest.mark.system

ALERTS = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yml"
RULES: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for rule in yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]
}


def promtool(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    needed("promtool")
    command = ["promtool", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_rules_are_rules_of_prometheus() -> None:
    done = promtool("check", "rules", ALERTS)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(RULES)} rules found" in done.stdout


@pytest.mark.parametrize("alert", RULES)
def test_an_alert_has_a_case_that_fires_and_one_that_does_not(alert: str) -> None:
    fires = {case.labels is not None for case in CASES if case.alert == alert}
    assert fires == {True, False}


@pytest.mark.spec("alerts.fire-when-they-have-to")
def test_alerts_fire_when_they_have_to_and_not_otherwise(tmp_path: Path) -> None:
    done = outcome(CASES, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("case", CASES[:4])
def test_a_case_that_expects_the_opposite_fails(case: Case, tmp_path: Path) -> None:
    opposite = case._replace(labels={"job": "factbook"} if case.labels is None else None)
    assert outcome([opposite], tmp_path).returncode != 0


def outcome(cases: Any, folder: Path) -> subprocess.CompletedProcess[str]:
    """What promtool says of the cases."""
    file = folder / "cases.yml"
    document = {"rule_files": [str(ALERTS)], "tests": [asked(case) for case in cases]}
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return promtool("test", "rules", file)


def asked(case: Case) -> dict[str, Any]:
    """A case in promtool's form."""
    rule = RULES[case.alert]
    expected = []
    if case.labels is not None:
        notes = {name: shown(text, case.labels) for name, text in rule["annotations"].items()}
        expected = [{"exp_labels": {**rule["labels"], **case.labels}, "exp_annotations": notes}]
    return {
        "interval": "1m",
        "input_series": [{"series": name, "values": text} for name, text in case.series.items()],
        "alert_rule_test": [
            {"eval_time": f"{case.minute}m", "alertname": case.alert, "exp_alerts": expected}
        ],
    }


def shown(text: str, labels: dict[str, str]) -> str:
    """An annotation as Prometheus fills it in."""
    return re.sub(r"{{ \$labels\.(\w+) }}", lambda found: labels.get(found[1], ""), text)
