"""Stable interface for integrations in other packages: these names do not change.

A package registers its Vendor as an entry point of the group `factbook.integrations`, named by the
vendor's id.
"""

from factbook.clock import Clock, now
from factbook.errors import ConfigurationError
from factbook.facts.datasource import DataSource, Handler, Lifecycle
from factbook.facts.schema import Fact
from factbook.integrations.integration import Collected, Integration, Vendor, facts_of, portions
from factbook.integrations.locations import SourceLocation, annotations, location
from factbook.integrations.probes import Probe
from factbook.outbound import ANONYMOUS, Answer, Credential, HttpClient, Memory, path
from factbook.outbound.outcomes import Missing, Outcome
from factbook.settings.option_tables import origin, read, source_id, title

__all__ = [
    "ANONYMOUS",
    "Answer",
    "HttpClient",
    "Clock",
    "Collected",
    "ConfigurationError",
    "Credential",
    "DataSource",
    "Fact",
    "Handler",
    "Integration",
    "Lifecycle",
    "SourceLocation",
    "Memory",
    "Missing",
    "Outcome",
    "Probe",
    "Vendor",
    "annotations",
    "facts_of",
    "location",
    "now",
    "origin",
    "path",
    "portions",
    "read",
    "source_id",
    "title",
]
