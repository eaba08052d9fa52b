"""The states of a check for one entity: small numbers, since each is stored as one byte."""

from collections.abc import Mapping
from typing import Final

# Not evaluated yet.
NONE: Final = 0
PASS: Final = 1
FAIL: Final = 2
UNKNOWN: Final = 3
# The check is not about the entity: its `appliesTo` does not match.
OUT: Final = 4
# The condition `applicableWhen` of the check does not hold.
INAPPLICABLE: Final = 5
# A flag beside the state that would count without the exemption.
EXEMPT: Final = 16

_WORDS: Final[Mapping[int, str]] = {
    NONE: "unknown",
    PASS: "pass",
    FAIL: "fail",
    UNKNOWN: "unknown",
    OUT: "not-applicable",
    INAPPLICABLE: "not-applicable",
}
_EXEMPT_WORD: Final = "exempt"

# In the order in which people read them.
WORDS: Final = ("pass", "fail", "unknown", _EXEMPT_WORD, "not-applicable")


def name_state(state: int) -> str:
    """The state as every interface shows it."""
    return _EXEMPT_WORD if state & EXEMPT else _WORDS[state]
