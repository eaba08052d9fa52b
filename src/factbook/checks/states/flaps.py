"""Results that flap: flips so frequent that they tell nothing new."""

from collections.abc import Sequence
from typing import Final

from factbook.clock import DAY

WINDOW: Final = 7 * DAY
FLIPS: Final = 3
QUIET: Final = DAY


def is_flapping(flips: Sequence[int], now: int) -> bool:
    """Return true for a result that flipped three times in seven days, until it is quiet for one.

    `flips` are the times at which its state became another one, in any order.
    """
    if len(flips) < FLIPS:
        return False
    past = sorted(at for at in flips if at <= now)
    if not past or now - past[-1] >= QUIET:
        return False
    return len(past) >= FLIPS and past[-1] - past[-FLIPS] <= WINDOW


def looks_back_to(now: int) -> int:
    """The earliest time of a flip that matters by now."""
    return now - WINDOW - QUIET
