"""Handlers get what they use: to import one is not to import the service."""

import subprocess
import sys

import pytest

COUNT = "import sys, {}; print(*(name for name in sys.modules if name.split('.')[0] == 'factbook'))"


def imported_with(module: str) -> set[str]:
    """The modules of the service that a new interpreter has after importing this one."""
    done = subprocess.run(
        [sys.executable, "-c", COUNT.format(module)], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_handler_of_sets_imports_fewer_than_60_modules() -> None:
    assert len(imported_with("factbook.api.push.sets")) < 60


@pytest.mark.parametrize(
    "module", ["api.push.sets", "api.catalog.entities", "api.access.tokens", "api.events.events"]
)
def test_handlers_of_the_catalog_import_no_source_tool_or_webhook(module: str) -> None:
    rooms = {name.split(".")[1] for name in imported_with(f"factbook.{module}") if "." in name}
    assert not rooms & {"collection", "datasources", "integrations", "outbound", "tools"}
    assert not rooms & {"webhooks", "web", "scheduling"}
