"""States of a check for one entity: small numbers, stored as one byte each."""

from collections.abc import Mapping
from typing import Final

# Not evaluated yet.
NONE: Final = 0
PASS: Final = 1
FAIL: Final = 2
UNKNOWN: Final = 3
# The check doesn't apply to the entity: `appliesTo` doesn't match.
OUT: Final = 4
# The check's `applicableWhen` condition is false.
INAPPLICABLE: Final = 5
# A flag added to the state that would count without the exemption.
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

# In display order.
WORDS: Final = ("pass", "fail", "unknown", _EXEMPT_WORD, "not-applicable")


def name_state(state: int) -> str:
    """The state as every interface shows it."""
    return _EXEMPT_WORD if state & EXEMPT else _WORDS[state]
