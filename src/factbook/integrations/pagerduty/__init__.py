"""PagerDuty: incidents of a service, and the service's set-up for incident response."""

from functools import partial
from typing import Final

from factbook.integrations.integration import Instance, Integration, make_vendor
from factbook.integrations.pagerduty.client import PROBES, collect_pagerduty
from factbook.integrations.pagerduty.options import (
    INTEGRATION_KEY,
    SERVICE_ID,
    PagerdutyOptions,
    find_pagerduty_target,
)


def _make_pagerduty_integration(instance: Instance[PagerdutyOptions]) -> Integration:
    options = instance.options
    account = f" of the account {options.account}" if options.account else ""
    return Integration(
        source=instance.source(
            f"Incidents and the set-up of services{account}.", (SERVICE_ID, INTEGRATION_KEY)
        ),
        authorize=instance.credential({"authorization": f"Token token={options.api_key}"}),
        base_url=options.base_url,
        target=partial(find_pagerduty_target, options),
        collect=collect_pagerduty,
        probes=PROBES,
    )


INTEGRATION: Final = make_vendor(
    "pagerduty", "PagerDuty", PagerdutyOptions, _make_pagerduty_integration, ("incident",)
)
