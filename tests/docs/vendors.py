"""The parts of an integration's page that repeat its code, and the facts that fill the tools."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

import factbook.integrations
from factbook.facts.schema import Fact
from factbook.integrations.integration import Vendor
from tests.docs.settings import options
from tests.docs.tables import code, table

_SOURCES = Path(factbook.integrations.__file__).parent


def vendor_of(folder: Path) -> Vendor:
    """What the folder of an integration exports."""
    found: Vendor = import_module(f"factbook.integrations.{folder.name}").INTEGRATION
    return found


# Every integration by its README.
READMES = {path: vendor_of(path.parent) for path in sorted(_SOURCES.glob("*/README.md"))}


def parts_of(vendor: Vendor) -> dict[str, Callable[[], str]]:
    """The parts of an integration's README."""
    return {"options": partial(options, vendor.options), "facts": partial(facts, vendor)}


def facts(vendor: Vendor) -> str:
    """Every fact of an integration, with its type and unit."""
    return table(("Fact", "Type", "Unit", "Meaning"), [_fact(fact) for fact in vendor.facts])


def _fact(fact: Fact) -> tuple[str, ...]:
    return code(fact.name), fact.type, fact.unit or "", fact.description
