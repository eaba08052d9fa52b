"""Log of counted events that clients can cause, limited so that it cannot fill the disk."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import structlog

log = structlog.get_logger("factbook.connections")

_PAUSE: Final = 60.0  # seconds

Later = Callable[[float, Callable[[], None]], Any]


class Tally:
    """Logs the first event at once, then the counts of each minute that had some."""

    def __init__(self, event: str) -> None:
        self._event = event
        self._counts: Counter[str] = Counter()
        self._pauses = False

    def add(self, kind: str, later: Later) -> None:
        """Count one event; `later` schedules a function in seconds. Kinds have to be few."""
        self._counts[kind] += 1
        if not self._pauses:
            self._tell(later)

    def _tell(self, later: Later) -> None:
        self._pauses = bool(self._counts)
        if self._pauses:
            log.warning(self._event, counts=dict(self._counts))
            self._counts.clear()
            later(_PAUSE, partial(self._tell, later))
