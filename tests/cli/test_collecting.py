"""`factbook collect`: what it says while it waits, and where."""

import asyncio
import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from factbook.cli.sources import Lines
from factbook.scheduling.runs import RunRecord
from factbook.settings import Settings
from tests import commands
from tests.fakes.serving import served
from tests.integrations.datadog import asking as datadog
from tests.processes import FACTBOOK, TOKEN_KEY, ServerProcess
from tests.service import component, started

SAID = "Collecting datadog\n"
DONE = "datadog: 1 covered, 0 failed, 0 incomplete, 0 skipped; 2 calls in "


@pytest.fixture
def process(tmp_path: Path) -> Iterator[ServerProcess]:
    """Commands on a database with an entity that Datadog knows; no server is started."""
    fake, _ = datadog.started()
    with served(fake) as url:
        keys = {name.upper(): value for name, value in datadog.KEYS.items()}
        options = keys | {"BASE_URL": url}
        process = ServerProcess(
            f"sqlite:///{tmp_path / 'facts.db'}",
            tmp_path,
            FACTBOOK_OUTGOING_NETWORKS="127.0.0.0/8",
            **{f"FACTBOOK_INTEGRATIONS__DATADOG__DEFAULT__{k}": v for k, v in options.items()},
        )
        asyncio.run(pushed(process.database_url))
        yield process


async def pushed(database_url: str) -> None:
    made = component("web")
    made["metadata"]["annotations"] = {"datadoghq.com/service-name": "app"}
    async with started(Settings(database_url=database_url, token_key=TOKEN_KEY)) as service:
        assert (await service.push("all", made)).status_code == 200


@pytest.mark.slow
def test_on_a_pipe_it_says_in_plain_lines_how_far_it_is(process: ServerProcess) -> None:
    done = commands.invoke(process.folder, process.environment, "collect", "datadog")
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(DONE)
    assert done.stderr == SAID


@pytest.mark.slow
def test_on_a_terminal_it_shows_a_bar_and_nothing_of_it_on_stdout(process: ServerProcess) -> None:
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [FACTBOOK, "collect", "datadog"],
        env=process.environment | {"TERM": "xterm", "COLUMNS": "100"},
        cwd=process.folder,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as command:
        os.close(theirs)
        said = b""
        # Read while it draws: a full terminal would stop it. Its end closes the terminal.
        with suppress(OSError), os.fdopen(ours, "rb", buffering=0) as terminal:
            while piece := terminal.read(65_536):
                said += piece
        stdout, _ = command.communicate()
    assert command.returncode == 0
    assert stdout.startswith(DONE)
    assert stdout.isprintable() or stdout.rstrip("\n").isprintable()
    assert b"Collecting datadog" in said
    assert b"\x1b[" in said


def run(
    covered: int = 0, failed: int = 0, calls: int = 0, finished_at: int | None = None
) -> RunRecord:
    """How far a run is."""
    return RunRecord(
        1, "github", True, "asked", 0, 0, finished_at, 1_200, covered, failed, 0, calls, None, None
    )


def test_lines_come_seldom_and_say_that_it_waits(capsys: pytest.CaptureFixture[str]) -> None:
    now = 100.0
    lines = Lines("github", lambda: now)
    for after, shown in (
        (0, run()),
        (1, run(10, calls=1)),
        (10, run(20, 3, 45)),
        (5, run(30, 3, 50)),
        (5, run(40, 3, 60)),
        (20, run(40, 3, 60)),
        (40, run(40, 3, 60)),
        (59, run(40, 3, 60)),
        (1, run(40, 3, 60)),
        (9, run(1_200, 0, 90, finished_at=1)),
    ):
        now += after
        lines.show(shown)
    assert capsys.readouterr().err.splitlines() == [
        "Collecting github",
        "github: 23 of 1,200 entities, 3 failed, 45 calls",
        "github: 43 of 1,200 entities, 3 failed, 60 calls",
        "github: 43 of 1,200 entities, 3 failed, 60 calls; waiting",
        "github: 43 of 1,200 entities, 3 failed, 60 calls; waiting",
    ]
