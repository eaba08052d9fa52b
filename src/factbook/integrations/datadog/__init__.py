"""Datadog: the observability shape."""

from functools import partial
from typing import Final

from factbook.integrations.datadog.client import PROBES, collect_datadog
from factbook.integrations.datadog.options import KEYS, DatadogOptions, find_datadog_target
from factbook.integrations.integration import Instance, Integration, make_vendor


def _make_datadog_integration(instance: Instance[DatadogOptions]) -> Integration:
    options = instance.options
    return Integration(
        source=instance.source(f"Monitors and service level objectives on {options.site}.", KEYS),
        authorize=instance.credential(
            {"dd-api-key": options.api_key, "dd-application-key": options.application_key}
        ),
        base_url=options.address,
        # Each listing goes on from page to page.
        calls_at_once=2,
        target=partial(find_datadog_target, options),
        collect=collect_datadog,
        probes=PROBES,
    )


INTEGRATION: Final = make_vendor(
    "datadog", "Datadog", DatadogOptions, _make_datadog_integration, ("observability",)
)
