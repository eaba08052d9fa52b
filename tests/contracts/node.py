"""Programs of npm packages, run by the version of Node.js that `package.json` names."""

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.processes import clean_environment

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"
NODE = MODULES / ".bin" / "node"


def run(program: str | Path, *arguments: str, expect: int = 0) -> str:
    """What a program, named as in this folder, prints; its exit code has to be the expected one."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [NODE, HERE / program, *arguments],
            env=clean_environment() | {"HOME": home},
            cwd=home,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
    assert done.returncode == expect, done.stdout + done.stderr
    return done.stdout


def ask(program: str, *arguments: str, question: object = None) -> Any:
    """What a program prints as JSON, given a question in JSON as its last argument."""
    return json.loads(run(program, *arguments, json.dumps(question)))


@contextmanager
def proxied(url: str, token: str) -> Iterator[str]:
    """The address of a proxy that adds the token to whatever is sent to the server at `url`."""
    with subprocess.Popen(
        [NODE, HERE / "proxy.mjs", url, token], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().strip()
            assert address, "the proxy did not start"
            yield address
        finally:
            process.terminate()
