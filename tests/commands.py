"""Commands of `factbook` in the test's process. Starting another takes a second of CPU time."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import chdir
from pathlib import Path

from typer.testing import CliRunner, Result

from factbook.cli.commands import app
from factbook.settings import Settings
from factbook.telemetry import logs


def invoke(folder: Path, environment: Mapping[str, str], *arguments: str) -> Result:
    """The result of a command in this folder, with these variables and no others."""
    variables = {name: environment.get(name) for name in os.environ.keys() | environment.keys()}
    # A thread has no event loop yet, which the test may have.
    with chdir(folder), logs.configure_logs_within(Settings()), ThreadPoolExecutor(1) as thread:
        return thread.submit(CliRunner().invoke, app, arguments, env=variables).result()
