"""PagerDuty: incidents of a service, and the service's set-up for incident response."""

from functools import partial
from typing import Final

from factbook.integrations.configuration import Instance, vendor
from factbook.integrations.integration import Integration
from factbook.integrations.pagerduty.client import PROBES, collect
from factbook.integrations.pagerduty.options import (
    INTEGRATION_KEY,
    SERVICE_ID,
    PagerdutyOptions,
    target,
)


def _configured(instance: Instance[PagerdutyOptions]) -> Integration:
    options = instance.options
    account = f" of the account {options.account}" if options.account else ""
    return Integration(
        source=instance.source(
            f"Incidents and the set-up of services{account}.", (SERVICE_ID, INTEGRATION_KEY)
        ),
        authorize=instance.credential({"authorization": f"Token token={options.api_key}"}),
        base_url=options.base_url,
        target=partial(target, options),
        collect=collect,
        probes=PROBES,
    )


INTEGRATION: Final = vendor("pagerduty", "PagerDuty", PagerdutyOptions, _configured, ("incident",))
