"""Programs that a library starts when a worker imports it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import clean_environment

IMPORT = """
import os
from factbook.cli.sources import _sharing
assert _sharing("postgresql://db/factbook").__name__ == "LaneCollector"
assert os.environ["FACTBOOK_TOKEN_KEY"] == "a secret of tests"
"""


@pytest.mark.slow
@pytest.mark.spec("security.no-secret-leaves")
def test_a_program_that_a_library_starts_inherits_no_secret(tmp_path: Path) -> None:
    dump = tmp_path / "variables"
    program = tmp_path / "file"
    program.write_text(f'#!/bin/sh\n/usr/bin/env > "{dump}"\n')
    program.chmod(0o755)
    variables = {
        "FACTBOOK_TOKEN_KEY": "a secret of tests",
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }
    subprocess.run(
        [sys.executable, "-c", IMPORT],
        env=clean_environment() | variables,
        cwd=tmp_path,
        check=True,
    )
    # Once nothing is started any more, nothing has to be hidden.
    assert "a secret of tests" not in dump.read_text()
