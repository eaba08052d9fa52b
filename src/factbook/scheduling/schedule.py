"""Start times of sources: the times of their cadences, spread by a hash of the source name."""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256

from factbook.clock import MINUTE, SECOND
from factbook.scheduling import crontab
from factbook.scheduling.crontab import Cadence

# Sources of one cadence start within this time after its moment, or within half of the time to
# the next moment where that is shorter.
SPREAD = 15 * MINUTE


def nexts(cadences: Mapping[str, str], last: Mapping[str, int]) -> dict[str, int]:
    """The next start of each name; 0, meaning at once, for one that never started.

    `cadences` are cron expressions by name, `last` the last start of each. Any number of missed
    starts is made up by a single one.
    """
    return {
        name: next_start(name, line, last[name]) if name in last else 0
        for name, line in cadences.items()
    }


def due(nexts: Mapping[str, int], now: int) -> list[str]:
    """The names that are due, in the order of their start times."""
    return sorted((name for name in nexts if nexts[name] <= now), key=lambda n: (nexts[n], n))


@lru_cache(maxsize=4096)
def next_start(name: str, line: str, after: int) -> int:
    """The first start of `name` after `after`; all in milliseconds since the epoch."""
    parsed = crontab.parse(line)
    # The start of an earlier moment is past.
    moment = crontab.following(parsed, after - SPREAD)
    while (start := moment + _delay(name, parsed, moment)) <= after:
        moment = crontab.following(parsed, moment)
    return start


def _delay(name: str, parsed: Cadence, moment: int) -> int:
    """The delay of `name` after the cadence's time: always the same, in whole seconds."""
    most = min(SPREAD, (crontab.following(parsed, moment) - moment) // 2) // SECOND
    return _hash(name) % most * SECOND


@lru_cache(maxsize=4096)
def _hash(name: str) -> int:
    return int.from_bytes(sha256(name.encode()).digest()[:8])
