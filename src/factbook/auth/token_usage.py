"""Use of tokens: the calls of tools that each made, and the size of what was answered, by day."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from factbook.storage import Database, Transaction

KEPT_DAYS: Final = 90
# Of text in English and JSON, by most models.
_CHARACTERS_A_TOKEN: Final = 4


class TokenUsage(NamedTuple):
    """A number of calls, and the characters of their results."""

    calls: int = 0
    size: int = 0

    @property
    def model_tokens(self) -> int:
        """About how many tokens of a model the results were."""
        return self.size // _CHARACTERS_A_TOKEN

    def plus(self, other: "TokenUsage") -> "TokenUsage":
        """Both together."""
        return TokenUsage(self.calls + other.calls, self.size + other.size)


class UsageDay(NamedTuple):
    """A token, and a day since the epoch."""

    token_id: str
    day: int


def add(transaction: Transaction, found: Mapping[UsageDay, TokenUsage]) -> None:
    """Add to what is stored; in one order, so that no two processes wait for each other."""
    for key in sorted(found):
        transaction.run(_ADD, (*key, *found[key]))


async def since(database: Database, ids: Sequence[str], day: int) -> dict[str, TokenUsage]:
    """The use of each of these tokens from a day on, if there is any."""
    rows = await database.all(_SINCE, (list(ids), day))
    return {id_: TokenUsage(calls, size) for id_, calls, size in rows}


def forget(transaction: Transaction, before: int) -> None:
    """Delete the use before a day."""
    transaction.run("DELETE FROM token_usage WHERE day < ?", (before,))


_ADD: Final = """
INSERT INTO token_usage (token_id, day, calls, size) VALUES (?, ?, ?, ?)
ON CONFLICT (token_id, day)
DO UPDATE SET calls = token_usage.calls + excluded.calls, size = token_usage.size + excluded.size
"""

_SINCE: Final = """
SELECT token_id, CAST(sum(calls) AS BIGINT), CAST(sum(size) AS BIGINT) FROM token_usage
WHERE token_id IN LIST(?) AND day >= ? GROUP BY token_id
"""
