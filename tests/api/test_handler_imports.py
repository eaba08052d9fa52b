"""Handlers get what they use: to import one is not to import the service."""

import json
import subprocess
import sys

import pytest

SETS = "factbook.api.push"
HANDLERS = [
    SETS,
    "factbook.api.catalog",
    "factbook.api.access",
    "factbook.api.events",
]
PROGRAM = """
import json, sys
from importlib import import_module
for module in sys.argv[1:]:
    import_module(module)
    ours = [name for name in sys.modules if name.split(".")[0] == "factbook"]
    print(json.dumps(ours))
    for name in ours:
        del sys.modules[name]
"""


@pytest.mark.slow
def test_handlers_of_the_catalog_import_little_and_no_source_tool_or_webhook() -> None:
    command = [sys.executable, "-c", PROGRAM, *HANDLERS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = dict(zip(HANDLERS, map(json.loads, done.stdout.splitlines()), strict=True))
    assert len(imported[SETS]) < 72
    elsewhere = {"collection", "datasources", "integrations", "outbound", "tools"}
    elsewhere |= {"webhooks", "web", "scheduling"}
    for handler, modules in imported.items():
        assert handler in modules
        rooms = {name.split(".")[1] for name in modules if "." in name}
        assert not rooms & elsewhere, handler
