"""The examples of the documentation do what the pages say, on a real server.

Blocks of bash and python run in the order of their page, in one folder; variables that a block
exports are there for the next. A block of json or output after one is what it prints; `…` stands
for what is left out, and times, UUIDs and tokens count as equal.
"""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path

import pytest

from tests.docs.blocks import Example, examples, json_differs, output_differs
from tests.docs.github_account import organization
from tests.processes import ServerProcess, serving

pytestmark = pytest.mark.timeout(1_500)

ROOT = Path(__file__).parents[2]
# What a newcomer types first is tried with every change to the code.
FIRST = [ROOT / "docs" / "start.md"]
OTHERS = [
    ROOT / "docs" / "walk-through.md",
    ROOT / "docs" / "five-minutes.md",
    ROOT / "docs" / "scorecards.md",
    ROOT / "docs" / "backstage.md",
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
    ROOT / "docs" / "reference" / "client.md",
]
PAGES = [*FIRST, *OTHERS]
CURL = Path(__file__).with_name("curl.py")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all pages."""
    folder = tmp_path_factory.mktemp("examples")
    with serving(f"sqlite:///{folder / 'factbook.db'}", folder) as server:
        server.environment["FACTBOOK_TOKEN"] = server.token()
        yield server


@pytest.fixture
def curl(tmp_path: Path) -> list[Path]:
    """Folder of a stand-in for `curl` on a machine without it, which needs no other program."""
    if shutil.which("curl"):
        return []
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "curl"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{CURL}" "$@"\n')
    script.chmod(0o755)
    return [folder]


class Reader:
    """Someone who types what a page says, and at the end stops what it has started."""

    def __init__(
        self, server: ServerProcess, folder: Path, *programs: Path, **variables: str
    ) -> None:
        self._folder = folder
        self._variables = folder / ".variables"
        self._variables.touch()
        path = [*programs, Path(sys.executable).parent, os.environ["PATH"]]
        self._environment = server.environment | variables | {"PATH": ":".join(map(str, path))}
        self._sessions: list[int] = []

    def run(self, example: Example) -> str:
        """What an example prints, errors included unless it prints JSON."""
        script = example.code
        if example.language == "python":
            (self._folder / "example.py").write_text(script)
            script = "python example.py"
        process = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", f". .variables\n{script}\nexport -p > .variables"],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if example.shown_as == "json" else subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._sessions.append(process.pid)
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, f"{output}\n{errors}"
        return output

    def stop(self) -> None:
        """Stop what still runs in the background."""
        for session in self._sessions:
            with suppress(ProcessLookupError):
                os.killpg(session, signal.SIGKILL)


def surroundings(page: Path) -> AbstractContextManager[dict[str, str]]:
    """What is there while a page is read: variables that lead to a vendor's fake, or none."""
    return organization() if page.stem in ("five-minutes", "import") else nullcontext({})


def check_examples(page: Path, reader: Reader) -> None:
    """Run every example of a page and compare what it prints with what is shown."""
    try:
        for example in examples(page):
            printed = reader.run(example)
            differs = {"json": json_differs, "output": output_differs}.get(example.shown_as or "")
            difference = differs and differs(example.shown, printed)
            assert difference is None, f"{page.name}, line {example.line}: {difference}"
    finally:
        reader.stop()


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [*FIRST, *(pytest.param(page, marks=pytest.mark.system) for page in OTHERS)],
    ids=lambda page: page.stem,
)
def test_the_examples_of_a_page_work(
    page: Path, server: ServerProcess, tmp_path: Path, curl: list[Path]
) -> None:
    with surroundings(page) as variables:
        check_examples(page, Reader(server, tmp_path, *curl, **variables))


def test_the_pages_have_examples() -> None:
    assert all(examples(page) for page in PAGES)


def test_json_that_differs_is_found(subtests: pytest.Subtests) -> None:
    for expected, real in [
        ('{"a": 1}', '{"a": 2}'),
        ('{"a": 1}', '{"a": 1, "b": 2}'),
        ('{"a": 1, "b": 2, "…": "…"}', '{"a": 1}'),
        ('{"a": true}', '{"a": 1}'),
        ("[1, 2]", "[1]"),
        ('[1, "…"]', "[2, 3]"),
        ('"2026-11-21T07:28:14.846+00:00"', '"today"'),
        ("{}", "not JSON"),
    ]:
        with subtests.test(expected=expected, real=real):
            assert json_differs(expected, real)


def test_json_may_leave_out_and_vary_in_what_changes_from_run_to_run() -> None:
    shown = '{"at": "2026-11-21T07:28:14.846+00:00", "list": [1, "…"], "…": "…"}'
    real = '{"at": "2031-01-01T00:00:00.000+00:00", "list": [1, 2, 3], "more": 1}'
    assert json_differs(shown, real) is None


def test_output_that_differs_is_found() -> None:
    assert output_differs("one\ntwo", "one\nthree")
    assert output_differs("one", "one\ntwo")
    assert output_differs("one and…", "none")
    assert output_differs("one and…\n\ntwo", "one and more  \ntwo\n") is None
