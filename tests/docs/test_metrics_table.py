"""The table of metrics in the documentation, what `/metrics` shows, and what alerts ask for."""

import re
from typing import Any

import pytest
import yaml

from factbook.clock import DAY, HOUR
from factbook.integrations import SOURCES
from factbook.outbound.client import Allowance
from tests.collection.madeup import Vendor, integration
from tests.collection.world import World
from tests.docs.parts import DOCS
from tests.importers.madeup import ImportWorld, known_to
from tests.service import NOON

ALERTS = DOCS.parent / "deploy" / "prometheus" / "alerts.yml"
ROW = re.compile(r"^\| `(factbook_\w+)` \|([^|]*)\|", re.MULTILINE)
SAMPLE = re.compile(r"^(factbook_\w+?)(?:_bucket|_sum|_count)?(?:{(.*)})? \S+$", re.MULTILINE)
ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


def documented() -> dict[str, set[str]]:
    """The labels of each metric in the table."""
    text = (DOCS / "how-to" / "operate.md").read_text()
    rows = ROW.findall(text)
    assert len(rows) == len(dict(rows))
    return {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}


@pytest.mark.spec("metrics.documented")
@ON_SQLITE
async def test_the_table_has_every_metric_with_its_labels_and_no_other(start: Any) -> None:
    world = World(await start(sources=[*SOURCES, integration(Vendor()).source]))
    await world.push("web")
    world.vendor.limit(70, NOON + HOUR)
    world.vendor.client.counted.credential_expires_at = NOON + DAY
    await world.collector.drain()
    imports = ImportWorld(world.database)
    known_to(world.service, imports.system.importer())
    imports.process.client.counted.allowances["core"] = Allowance(5_000, 4_900, NOON + HOUR)
    await imports.process.work()
    await world.service.facts("get-entity-compliance", name="web")
    text = (await world.service.http.get("/metrics")).text
    text = (await world.service.http.get("/metrics")).text  # which counts the first
    table = documented()
    shown = set(re.findall(r"^# TYPE (factbook_\w+) ", text, re.MULTILINE))
    # Those of a replica are shown where there is one (tests/system/test_read_replica.py).
    assert shown | {name for name in table if "_replica_" in name} == set(table)
    for name, labels in SAMPLE.findall(text):
        given = set(re.findall(r'(\w+)="', labels)) - {"le"}
        assert given == table[name], name


def test_alerts_ask_for_metrics_that_there_are() -> None:
    [group] = yaml.safe_load(ALERTS.read_text())["groups"]
    known = set(documented())
    for rule in group["rules"]:
        used = {
            re.sub(r"_(bucket|sum|count)$", "", name)
            for name in re.findall(r"factbook_\w+", rule["expr"])
        }
        assert used <= known, rule["alert"]
        assert used or 'job="factbook"' in rule["expr"], rule["alert"]


def test_the_page_names_every_alert_and_no_other() -> None:
    [group] = yaml.safe_load(ALERTS.read_text())["groups"]
    text = (DOCS / "how-to" / "operate.md").read_text()
    named = re.findall(r"^\| `(Factbook\w+)` \|", text, re.MULTILINE)
    assert named == [rule["alert"] for rule in group["rules"]]
