"""PagerDuty: incidents of a service, and the service's set-up for incident response."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from factbook.clock import Clock, now
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from factbook.facts.shapes import INCIDENT
from factbook.integrations.integration import Integration, Vendor, facts_of, portions, source_of
from factbook.integrations.pagerduty.client import PROBES, collect
from factbook.integrations.pagerduty.options import Options
from factbook.integrations.pagerduty.targets import INTEGRATION_KEY, SERVICE_ID, target
from factbook.outbound import Credential, HttpClient
from factbook.settings import option_tables as configuring

ID: Final = "pagerduty"
FILLS: Final = ("incident",)
FACTS: Final[tuple[Fact, ...]] = facts_of(INCIDENT)


def configured(name: str, values: Mapping[str, Any], *, clock: Clock = now) -> Integration:
    """The integration that the table `[integrations.pagerduty.<name>]` of the settings describes.

    The one named `default` is the source `pagerduty`, another one `pagerduty-<name>`. Raises
    ConfigurationError for what is wrong with the table.
    """
    options = configuring.read(ID, name, values, Options)
    id_ = configuring.source_id(ID, name)
    return Integration(
        source=_source(id_, configuring.title("PagerDuty", name), options),
        fills=FILLS,
        credential=id_,
        authorize=partial(_credential, id_, options),
        base_url=options.base_url,
        target=partial(target, options),
        # The listing and analytics answer for every service at once.
        batches=portions,
        collect=collect,
        probes=PROBES,
    )


def _credential(name: str, options: Options, _: HttpClient) -> Credential:
    return Credential.fixed(name, {"authorization": f"Token token={options.api_key}"})


def _source(id_: str, title: str, options: Options) -> DataSource:
    account = f" of the account {options.account}" if options.account else ""
    return source_of(
        ID,
        id_,
        title,
        f"Incidents and the set-up of services{account}.",
        (SERVICE_ID, INTEGRATION_KEY),
        FACTS,
    )


INTEGRATION: Final = Vendor(
    id=ID, title="PagerDuty", options=Options, facts=FACTS, fills=FILLS, configured=configured
)
