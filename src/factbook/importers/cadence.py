"""The next run of an importer: by its interval, and sooner after one that was not whole."""

from typing import Final

from factbook.clock import DAY, MINUTE
from factbook.importers.run_store import ImportRun

# After the first run that was not whole; it doubles with each further one.
AGAIN: Final = 5 * MINUTE
_DOUBLINGS: Final = 10
# No limit holds for longer.
_LONGEST_PAUSE: Final = DAY
# By how much the clocks of machines may differ.
_AHEAD: Final = MINUTE


def next_start(every: int | None, last: ImportRun | None, now: int) -> int | None:
    """The time of the next run by itself; None if there is none, or one is under way.

    A time in the past is due.
    """
    if every is None:
        return None
    if last is None or last.started_at is None:
        return now
    if last.ended_at is None:
        return None
    if last.started_at > now + _AHEAD:
        # By a clock that was set back since.
        return now
    due = last.started_at + every
    if last.failures:
        pause = AGAIN << min(last.failures - 1, _DOUBLINGS)
        due = min(due, last.ended_at + pause)
    if last.resumes_at is not None:
        due = max(due, min(last.resumes_at, last.ended_at + _LONGEST_PAUSE))
    return due
