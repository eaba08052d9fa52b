"""Programs in Python environments of their own, which `scripts/install-system` makes."""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.processes import clean_environment

HERE = Path(__file__).parent
# By the names of the environments, which are those of their lock files.
ENVIRONMENTS = {path.stem: Path(sys.prefix, path.stem) for path in HERE.glob("hosts-*.lock")}


def run(environment: str, program: str, *arguments: str, stdin: str = "") -> str:
    """Run a program of this folder in an environment, and return its standard output."""
    python = ENVIRONMENTS[environment] / "bin" / "python"
    assert python.exists(), f"{environment} is missing: scripts/install-system"
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [python, HERE / program, *arguments],
            env=clean_environment() | {"HOME": home},
            cwd=home,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
