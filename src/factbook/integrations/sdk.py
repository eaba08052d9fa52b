"""Stable API for integrations in other packages: these names do not change.

A package registers its Vendor as an entry point of the group `factbook.integrations`, named after
the vendor's id.
"""

from factbook.clock import Clock, now
from factbook.errors import ConfigurationError
from factbook.facts.datasource import DataSource, Handler, Lifecycle
from factbook.facts.schema import Fact
from factbook.integrations.integration import (
    Collected,
    Instance,
    InstanceOptions,
    Integration,
    NumberedPages,
    Probe,
    Vendor,
)
from factbook.integrations.integration import SourceLocation as Location
from factbook.integrations.integration import find_location as location
from factbook.integrations.integration import get_annotations as annotations
from factbook.integrations.integration import list_shape_facts as facts_of
from factbook.integrations.integration import make_vendor as vendor
from factbook.integrations.integration import run_for_each as each
from factbook.integrations.integration import split_targets as portions
from factbook.outbound.cache import Memory
from factbook.outbound.client import ANONYMOUS, Credential
from factbook.outbound.client import HttpClient as Client
from factbook.outbound.client import build_path as path
from factbook.outbound.outcomes import Answer, Missing, Outcome
from factbook.settings.option_tables import about, source_id
from factbook.settings.option_tables import instance_title as title
from factbook.settings.option_tables import read_options as read
from factbook.settings.option_tables import url_origin as origin

__all__ = [
    "ANONYMOUS",
    "Answer",
    "Client",
    "Clock",
    "Collected",
    "ConfigurationError",
    "Credential",
    "DataSource",
    "Fact",
    "Handler",
    "Instance",
    "InstanceOptions",
    "Integration",
    "Lifecycle",
    "Location",
    "Memory",
    "Missing",
    "NumberedPages",
    "Outcome",
    "Probe",
    "Vendor",
    "about",
    "annotations",
    "each",
    "facts_of",
    "location",
    "now",
    "origin",
    "path",
    "portions",
    "read",
    "source_id",
    "title",
    "vendor",
]
