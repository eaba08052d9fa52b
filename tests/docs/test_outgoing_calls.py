"""The page of outgoing calls gives the figures that the code has."""

import pytest

from factbook.clock import MINUTE
from factbook.outbound.client import ATTEMPTS, LONGEST_PAUSE, PATIENCE, RESERVE
from factbook.outbound.network import MOST_BYTES, MOST_SECONDS
from factbook.outbound.outcomes import REPEATABLE
from tests.docs.parts import DOCS

PAGE = " ".join((DOCS / "reference" / "outgoing-calls.md").read_text().split())
WORDS = {3: "three", 10: "ten", 15: "fifteen"}
STATUSES = [str(status) for status in sorted(REPEATABLE)]


def test_the_page_says_the_figure_of_the_code(subtests: pytest.Subtests) -> None:
    for sentence in [
        f"use the last {WORDS[round(1 / RESERVE)]}th of a limit",
        f"a minute, then two, up to {WORDS[LONGEST_PAUSE // MINUTE]}",
        f"resets within {WORDS[round(PATIENCE)]} seconds is waited for",
        f"{', '.join(STATUSES[:-1])} and {STATUSES[-1]} are tried {WORDS[ATTEMPTS]} times",
        f"ends after {MOST_SECONDS:g} seconds",
        f"at most {MOST_BYTES // 1024 // 1024} MiB",
    ]:
        with subtests.test(sentence=sentence):
            assert sentence in PAGE
