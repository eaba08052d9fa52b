"""Datadog: the observability shape."""

from functools import partial
from typing import Final

from factbook.integrations.configuration import Instance, vendor
from factbook.integrations.datadog.client import PROBES, collect
from factbook.integrations.datadog.options import KEYS, DatadogOptions, target
from factbook.integrations.integration import Integration


def _configured(instance: Instance[DatadogOptions]) -> Integration:
    options = instance.options
    return Integration(
        source=instance.source(f"Monitors and service level objectives on {options.site}.", KEYS),
        authorize=instance.credential(
            {"dd-api-key": options.api_key, "dd-application-key": options.application_key}
        ),
        base_url=options.address,
        # Each listing goes on from page to page.
        calls_at_once=2,
        target=partial(target, options),
        collect=collect,
        probes=PROBES,
    )


INTEGRATION: Final = vendor("datadog", "Datadog", DatadogOptions, _configured, ("observability",))
