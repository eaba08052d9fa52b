"""Snyk: the security metrics' issues, from the projects of Snyk organizations."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from factbook.clock import Clock, now
from factbook.facts.datasource import DataSource
from factbook.facts.schema import Fact
from factbook.facts.shapes import SECURITY
from factbook.integrations.integration import Integration, Vendor, facts_of, portions, source_of
from factbook.integrations.snyk.client import collect, probes
from factbook.integrations.snyk.options import Options
from factbook.integrations.snyk.targets import SELECTING, target
from factbook.outbound import Credential, HttpClient
from factbook.settings import option_tables as configuring

ID: Final = "snyk"
FILLS: Final = ("security.scannerIssues",)
FACTS: Final[tuple[Fact, ...]] = facts_of(SECURITY, "scannerIssues")
# One for each severity, where issues are counted exactly.
_CALLS_AT_ONCE: Final = 4


def configured(name: str, values: Mapping[str, Any], *, clock: Clock = now) -> Integration:
    """The integration that the table `[integrations.snyk.<name>]` of the settings describes.

    The one named `default` is the source `snyk`, another one `snyk-<name>`. Raises
    ConfigurationError for what is wrong with the table.
    """
    options = configuring.read(ID, name, values, Options)
    id_ = configuring.source_id(ID, name)
    return Integration(
        source=_source(id_, configuring.title("Snyk", name), options),
        fills=FILLS,
        credential=id_,
        authorize=partial(_credential, id_, options),
        base_url=options.base_url,
        calls_at_once=_CALLS_AT_ONCE,
        target=partial(target, options),
        # Each organization is listed once for all of them.
        batches=portions,
        collect=partial(collect, options),
        probes=probes(options),
    )


def _credential(name: str, options: Options, _: HttpClient) -> Credential:
    return Credential.fixed(name, {"authorization": f"token {options.token}"})


def _source(id_: str, title: str, options: Options) -> DataSource:
    return source_of(
        ID,
        id_,
        title,
        f"Issues that Snyk found, from {configuring.origin(options.base_url)}.",
        SELECTING,
        FACTS,
    )


INTEGRATION: Final = Vendor(
    id=ID, title="Snyk", options=Options, facts=FACTS, fills=FILLS, configured=configured
)
