"""The number of examples that a test tries: few in `make test`, all with FACTBOOK_SOAK=1."""

import os
from typing import Final

from hypothesis import settings

SOAK: Final = bool(os.environ.get("FACTBOOK_SOAK"))


def seeds(usual: int, *, soak: int) -> range:
    """The seeds to try: `usual` of them in `make test`, and `soak` in `make soak`."""
    return range(soak if SOAK else usual)


def examples(usual: int) -> settings:
    """How many examples Hypothesis tries: `usual` in `make test`, 1,000 in `make soak`."""
    return settings(max_examples=1_000 if SOAK else usual)
