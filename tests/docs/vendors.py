"""The parts of an integration's README that repeat its code."""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

import msgspec

import factbook.sources
from factbook.facts.schema import Fact
from factbook.sources.integration import Vendor
from tests.docs.parts import code, table, type_words

_SOURCES = Path(factbook.sources.__file__).parent


def vendor_of(folder: Path) -> Vendor:
    """What the folder of an integration exports."""
    found: Vendor = import_module(f"factbook.sources.{folder.name}").INTEGRATION
    return found


# Every integration by its README.
READMES = {path: vendor_of(path.parent) for path in sorted(_SOURCES.glob("*/README.md"))}


def parts_of(vendor: Vendor) -> dict[str, Callable[[], str]]:
    """The parts of an integration's README."""
    return {"options": partial(options, vendor), "facts": partial(facts, vendor)}


def options(vendor: Vendor) -> str:
    """Every setting of an integration."""
    hints = get_type_hints(vendor.options, include_extras=True)
    types = get_type_hints(vendor.options)
    return table(
        ("Setting", "Type", "Default", "Meaning"),
        [
            (
                code(field.name),
                type_words(types[field.name]),
                _default(field),
                hints[field.name].__metadata__[0].description,
            )
            for field in msgspec.structs.fields(vendor.options)
        ],
    )


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default in {"", msgspec.NODEFAULT}:
        return "empty"
    return code(str(field.default).lower() if field.default is False else field.default)


def facts(vendor: Vendor) -> str:
    """Every fact of an integration, with its type and unit."""
    return table(("Fact", "Type", "Unit", "Meaning"), [_fact(fact) for fact in vendor.facts])


def _fact(fact: Fact) -> tuple[str, ...]:
    return code(fact.name), fact.type, fact.unit or "", fact.description
