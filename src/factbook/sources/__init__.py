"""Where facts come from: one folder for each integration, all of them in one list."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from factbook.clock import Clock, now
from factbook.errors import ConfigurationError
from factbook.facts.datasource import DataSource
from factbook.sources import catalog

if TYPE_CHECKING:
    from factbook.sources.integration import Integration, Vendor

SOURCES: tuple[DataSource, ...] = catalog.SOURCES

# Each is the name of a folder, whose INTEGRATION it is.
VENDORS = ("datadog", "git", "gitea", "github", "gitlab", "pagerduty", "prometheus", "snyk")


def vendor(id_: str) -> "Vendor":
    """What a vendor's folder exports; raises ConfigurationError for one that there is not."""
    if id_ not in VENDORS:
        known = ", ".join(VENDORS)
        raise ConfigurationError(f"There is no integration {id_!r}. There are: {known}.")
    # Heavy to import, and of no use where it is not configured.
    found: Vendor = import_module(f"{__name__}.{id_}").INTEGRATION
    return found


def configured(
    tables: Mapping[str, Mapping[str, Mapping[str, Any]]], *, clock: Clock = now
) -> "tuple[Integration, ...]":
    """The integrations of the settings' tables; raises ConfigurationError naming the table."""
    return tuple(
        vendor(id_).configured(name, values, clock=clock)
        for id_, named in tables.items()
        for name, values in named.items()
    )
