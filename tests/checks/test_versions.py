from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from factbook.checks.rules import language

# Each is before the next; those of one line are equal.
ORDER = [
    ["0"],
    ["0.9", "v0.9.0", "0.9.0.0"],
    ["1.0.0-1"],
    ["1.0.0-alpha"],
    ["1.0.0-alpha.1", "1.0a1"],
    ["1.0.0-alpha.beta"],
    ["1.0.0-beta.2"],
    ["1.0.0-beta.11"],
    ["1.0.0-rc.1", "1.0rc1", "1.0.0-RC.1"],
    ["1", "1.0.0", "1.0.0+build.5"],
    ["1.0.post1"],
    ["1.0.1"],
    ["1.9"],
    ["1.10"],
    ["2026.11.23"],
]


def test_versions_are_ordered_by_their_numbers() -> None:
    keys = [[language.parse_version(text) for text in line] for line in ORDER]

    assert all(None not in line and len(set(line)) == 1 for line in keys)
    assert all(a[0] < b[0] for a, b in pairwise(keys) if a[0] and b[0])


def test_what_has_no_order_is_no_version(subtests: pytest.Subtests) -> None:
    texts = ["", "latest", "1.x", "1..2", "^1.2", ">=1", "1.2.3.", "-1"]
    for text in (*texts, "1" * 19, "1.0 beta", "\u0661"):
        with subtests.test(text=text):
            assert language.parse_version(text) is None


@given(st.text(alphabet="v0123456789.-+abrcpost", max_size=20))
def test_any_text_has_an_answer(text: str) -> None:
    found = language.parse_version(text)

    assert found is None or found == language.parse_version(text.upper().replace("V", "v"))
