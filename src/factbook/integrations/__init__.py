"""Integrations with vendors that provide facts, one folder per vendor."""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from factbook.clock import Clock, now
from factbook.errors import ConfigurationError, suggestion
from factbook.facts.datasource import DataSource
from factbook.integrations import catalog, vendors

if TYPE_CHECKING:
    from factbook.integrations.integration import Integration, Vendor

SOURCES: tuple[DataSource, ...] = catalog.SOURCES

# Other packages offer their vendors as entry points of this group.
GROUP = "factbook.integrations"

# Folder names; each folder exports an INTEGRATION.
VENDORS = tuple(sorted(one.id for one in vendors.VENDORS))


def find_vendor(id_: str) -> "Vendor":
    """The Vendor from a folder here, or from another installed package.

    Raises ConfigurationError for a vendor that does not exist or cannot be loaded.
    """
    found: Vendor
    if id_ in VENDORS:
        # Imported only if configured, as the import is slow.
        found = import_module(f"{__name__}.{id_}").INTEGRATION
        return found
    # Imported late: it takes half of this room's import time.
    entry_points = import_module("importlib.metadata").entry_points
    points = {point.name: point for point in entry_points(group=GROUP)}
    if id_ not in points:
        known = suggestion(id_, [*VENDORS, *sorted(points)])
        raise ConfigurationError(f"There is no integration {id_!r}.{known}")
    try:
        found = points[id_].load()
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise ConfigurationError(f"The integration {id_!r} cannot be loaded: {what}.") from error
    if getattr(found, "id", None) != id_:
        raise ConfigurationError(f"The entry point {id_!r} of {GROUP} is not a Vendor of that id.")
    return found


def configure_integrations(
    tables: Mapping[str, Mapping[str, Mapping[str, Any]]], *, clock: Clock = now
) -> "tuple[Integration, ...]":
    """The integrations that the settings configure; raises ConfigurationError naming the table."""
    return tuple(
        find_vendor(id_).configured(name, values, clock=clock)
        for id_, named in tables.items()
        for name, values in named.items()
    )
