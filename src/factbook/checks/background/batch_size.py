"""Sizes of batches that take about as long as other writes may wait for them."""

from typing import Final

# Of one transaction.
SECONDS: Final = 0.5
_FIRST: Final = 200
_LEAST: Final = 5
_MOST: Final = 5_000


class BatchSize:
    """The entities of the next batch, by how long the ones before took."""

    first = _FIRST

    def __init__(self) -> None:
        self.entities = self.first

    def note(self, entities: int, seconds: float) -> None:
        """Note how long a batch took: the next one shrinks to fit, or is twice as large at most."""
        fits = int(entities * SECONDS / max(seconds, 0.001))
        self.entities = max(_LEAST, min(_MOST, fits, 2 * max(entities, _LEAST)))


class EvaluationBatchSize(BatchSize):
    """Of publications."""


class CostlyBatchSize(BatchSize):
    """Of publications of checks with patterns or paths, whose time depends on the facts."""

    first = _LEAST


class GradingBatchSize(BatchSize):
    """Of the grading of all entities."""


class DueBatchSize(BatchSize):
    """Of what is due because time passed."""
