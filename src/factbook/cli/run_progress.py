"""Progress of a run, while a command waits for its end."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from factbook.cli.output import note

if TYPE_CHECKING:
    from factbook.scheduling.runs import RunRecord

Show = Callable[["RunRecord"], None]

# Between two lines, when something has come and when nothing has.
_EVERY_SECONDS: Final = 10.0
_WAITING_SECONDS: Final = 60.0


@contextmanager
def run_progress(source_id: str) -> Iterator[Show]:
    """Show the progress of a run on stderr: as a bar on a terminal, else in plain lines."""
    if not sys.stderr.isatty():
        yield Lines(source_id).show
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[more]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as shown:
        task = shown.add_task(f"Collecting {source_id}", total=None, more="")

        def show(run: "RunRecord") -> None:
            done = run.covered + run.failed
            shown.update(task, completed=done, total=run.entities, more=_further(run))

        yield show


class Lines:
    """Progress of a run in plain lines: one at the start, then one from time to time.

    A quick run is one line, however often its progress is read.
    """

    def __init__(self, source_id: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._source_id = source_id
        self._clock = clock
        self._told: tuple[int, ...] | None = None
        self._at = clock()
        note(f"Collecting {source_id}")

    def show(self, run: "RunRecord") -> None:
        """Print the progress, unless printed a moment ago; the end is printed by the caller."""
        figures = (run.entities, run.covered, run.failed, run.calls)
        is_new = figures != self._told
        pause = _EVERY_SECONDS if is_new else _WAITING_SECONDS
        now = self._clock()
        if run.finished_at is not None or now - self._at < pause:
            return
        done, more = run.covered + run.failed, _further(run)
        waits = "" if is_new else "; waiting"
        note(
            f"{self._source_id}: {done:,} of {run.entities:,} entities{more and ', '}{more}{waits}"
        )
        self._told, self._at = figures, now


def _further(run: "RunRecord") -> str:
    """Further counts of the run: `3 failed, 45 calls`."""
    counts = ((run.failed, "failed"), (run.calls, "call" if run.calls == 1 else "calls"))
    return ", ".join(f"{count:,} {word}" for count, word in counts if count)
