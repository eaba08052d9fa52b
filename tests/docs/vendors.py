"""The parts of an integration's page that repeat its code, and the facts that fill the tools."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

import factbook.integrations
from factbook.facts import schema
from factbook.facts.schema import Fact
from factbook.integrations.integration import Vendor
from factbook.web.data_sources import METRIC_TOOLS as _TOOLS
from tests.docs import first_runs
from tests.docs.settings import options
from tests.docs.tables import code, table

_SOURCES = Path(factbook.integrations.__file__).parent
PAGES = Path(__file__).parents[2] / "docs" / "reference" / "integrations"


def vendor_of(name: str) -> Vendor:
    """What the folder of an integration exports."""
    found: Vendor = import_module(f"factbook.integrations.{name}").INTEGRATION
    return found


# Every integration by its folder.
VENDORS = {
    file.parent: vendor_of(file.parent.name) for file in sorted(_SOURCES.glob("*/__init__.py"))
}


def parts() -> dict[str, Callable[[], str]]:
    """The parts of every integration's page."""
    made: dict[str, Callable[[], str]] = {"shape-facts": shape_facts}
    for folder, vendor in VENDORS.items():
        made[f"options:{folder.name}"] = partial(options, vendor.options)
        made[f"facts:{folder.name}"] = partial(facts, vendor)
        if folder.name in first_runs.VENDORS:
            made[f"first-run:{folder.name}"] = partial(first_runs.calls, folder.name)
    return made


def shape_facts() -> str:
    """Every fact that fills a tool, with its type and unit."""
    rows = [
        (code(f"{shape.name}.{fact.name}"), fact.type, fact.unit or "", code(_TOOLS[shape.name]))
        for shape in schema.SHAPES
        if shape.name in _TOOLS
        for fact in schema.shape_facts(shape)
    ]
    return table(("Fact", "Type", "Unit", "Tool"), rows)


def facts(vendor: Vendor) -> str:
    """Every fact of an integration, with its type and unit."""
    return table(("Fact", "Type", "Unit", "Meaning"), [_fact(fact) for fact in vendor.facts])


def _fact(fact: Fact) -> tuple[str, ...]:
    return code(fact.name), fact.type, fact.unit or "", fact.description
