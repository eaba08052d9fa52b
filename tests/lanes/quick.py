"""`make quick`: format, lint and the tests nearest to what changed, in half a minute."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final

from tests.lanes.choice import row
from tests.lanes.imports import Importers, direct_importers, module
from tests.lanes.repository import Repository
from tests.lanes.tables import NEARBY

_SECONDS: Final = 30
_SPARE: Final = 5  # for a test that runs when the time is up, and for the summary
_LISTED: Final = 8


def run(started: float) -> int:
    """Run the checks and tests, print what they are, and return the exit status."""
    repository = Repository()
    scope, changed = repository.work_in_progress()
    present = sorted(path for path in changed if (repository.root / path).is_file())
    print(f"Changed {scope}: {_shortened(sorted(changed))}", flush=True)
    code = [path for path in present if path.endswith(".py")]
    failed = any([_ruff("format", "--check", paths=code), _ruff("check", paths=code)])
    tests = nearest(repository, sorted(changed))
    if not tests:
        print("No tests are near these files.")
        return int(failed)
    print(f"Tests, nearest first: {_shortened(tests)}", flush=True)
    return _pytest(tests, started) or int(failed)


def nearest(repository: Repository, changed: Sequence[str]) -> list[str]:
    """Return the files of tests that are near changed paths, nearest first.

    First come the changed ones, then those named after a changed module or importing it, then those
    of its room.
    """
    files = repository.files()
    tests = [
        path
        for path in files
        if path.startswith("tests/") and path.rpartition("/")[2].startswith("test_")
        if path.endswith(".py")
    ]
    # Code of the product is nearer than anything else that changed with it.
    changed = sorted(changed, key=lambda path: (not path.startswith("src/"), path))
    code = [path for path in changed if path.endswith(".py")]
    ordered = [path for path in tests if path in code]
    stems = {path.rpartition("/")[2].removesuffix(".py") for path in code}
    rooms = [_nearby(path, tests) for path in changed]
    ordered += [
        path
        for path in tests
        if path.rpartition("/")[2][len("test_") :].removesuffix(".py") in stems
        if path.startswith(tuple(room for room in rooms if room))
    ]
    names = {module(path) for path in code if path.startswith("src/")}
    ordered += direct_importers(repository.root, names, tests)
    helpers = [path for path in code if path.startswith("tests/") and path not in tests]
    if helpers:
        importers = Importers(repository.root, tests, files)
        reached = set().union(*(importers.of(path) for path in helpers))
        ordered += [path for path in tests if path in reached]
    ordered += [path for room in rooms if room for path in tests if path.startswith(room)]
    return list(dict.fromkeys(ordered))


def _nearby(path: str, tests: list[str]) -> str:
    """Return the folder or file with the tests of a path, the deepest that there is, or ''."""
    if (key := row(path, NEARBY)) is not None:
        return NEARBY[key]
    mirrored = path.removeprefix("src/factbook/").removeprefix("tests/")
    if mirrored == path:
        return ""
    if "/" not in mirrored:
        return f"tests/test_{mirrored}"
    folder = mirrored
    while "/" in folder:
        folder = folder.rpartition("/")[0]
        if any(test.startswith(f"tests/{folder}/") for test in tests):
            return f"tests/{folder}/"
    return ""


def _ruff(*words: str, paths: list[str]) -> bool:
    """Return whether ruff complains."""
    if not paths:
        return False
    program = [sys.executable, "-m", "ruff", *words, "--quiet", "--force-exclude", *paths]
    return subprocess.run(program, cwd=Repository().root, check=False).returncode != 0


def _pytest(tests: list[str], started: float) -> int:
    """Run tests until the time is up. A test that still runs then is interrupted."""
    until = started + _SECONDS - _SPARE
    command = (sys.executable, "-m", "pytest", "-q", "-p", "tests.lanes.budget")
    running = subprocess.Popen(
        [*command, "--until", str(until), *tests],
        cwd=Repository().root,
        env={**os.environ, "FACTBOOK_TEST_DATABASES": "sqlite"},
    )
    try:
        return running.wait(until + _SPARE / 2 - time.monotonic())
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGINT)
    try:
        return running.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        running.kill()
        print("A test could not be interrupted and was killed.")
        return 1


def _shortened(paths: list[str]) -> str:
    rest = len(paths) - _LISTED
    return " ".join(paths[:_LISTED]) + (f" and {rest} more" if rest > 0 else "")
