"""Datadog: the observability shape."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from factbook.clock import Clock, now
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from factbook.facts.shapes import OBSERVABILITY
from factbook.integrations.datadog.client import collect, credential
from factbook.integrations.datadog.options import Options
from factbook.integrations.datadog.targets import MONITOR_TAGS, SERVICE_NAME, SLO_TAG, target
from factbook.integrations.integration import Integration, Vendor, facts_of, portions, source_of
from factbook.integrations.probes import Probe
from factbook.settings import option_tables as configuring

ID: Final = "datadog"
FILLS: Final = ("observability",)
FACTS: Final[tuple[Fact, ...]] = facts_of(OBSERVABILITY)
# The two listings, each of which goes on from page to page.
_CALLS_AT_ONCE: Final = 2
_PROBES: Final = (
    Probe(
        right="monitors_read",
        target="/api/v1/monitor",
        facts=("observability.monitorCount",),
        query={"page": 0, "page_size": 1},
        budget="monitors",
    ),
    Probe(
        right="slos_read",
        target="/api/v1/slo",
        facts=("observability.sloCount",),
        query={"limit": 1},
        budget="slos",
    ),
)


def configured(name: str, values: Mapping[str, Any], *, clock: Clock = now) -> Integration:
    """The integration that the table `[integrations.datadog.<name>]` of the settings describes.

    The one named `default` is the source `datadog`, another one `datadog-<name>`. Raises
    ConfigurationError for what is wrong with the table.
    """
    options = configuring.read(ID, name, values, Options)
    id_ = configuring.source_id(ID, name)
    return Integration(
        source=_source(id_, configuring.title("Datadog", name), options),
        fills=FILLS,
        credential=id_,
        authorize=partial(credential, id_, options),
        base_url=options.address,
        calls_at_once=_CALLS_AT_ONCE,
        target=partial(target, options),
        # The listings are the same for every one.
        batches=portions,
        collect=collect,
        probes=_PROBES,
    )


def _source(id_: str, title: str, options: Options) -> DataSource:
    keys = (SERVICE_NAME, SLO_TAG, MONITOR_TAGS)
    return source_of(
        ID, id_, title, f"Monitors and service level objectives on {options.site}.", keys, FACTS
    )


INTEGRATION: Final = Vendor(
    id=ID, title="Datadog", options=Options, facts=FACTS, fills=FILLS, configured=configured
)
